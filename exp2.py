from exp_like import *
from doublewell.evidence.likelihood.noise import noise_view, outlier_mask
from doublewell.identify.trajectory_road import trajectory_fits
from scipy.ndimage import gaussian_filter
which=sys.argv[1:]
def coef(truth): return np.full(3,truth.force(np.array(-0.5)).item()/(0.5*0.75))
for name in ["sixth","exponential"]:
    truth=named_law(name).effective(0.03); start=coef(truth)
    clean=movie(name); full=add_noise(clean,0.03,seed=5)
    if "win" in which:
        win=Record(np.ascontiguousarray(full.slab()[:,2:66,8:72]),dx=1/96,dt=5e-5,q=1.0,boundary="open")
        fit(win,truth,f"{name} window",start=start,check=True)
    if "mask" in which:
        mask=np.random.default_rng(1).random(full.shape)>0.3
        fit(full.replace(mask=mask),truth,f"{name} mask 30",start=start,check=True)
    if "q" in which:
        fit(full.replace(q=1.2),truth,f"{name} q",view=View(q_free=True),start=start/1.2,check=True)
    if "corr" in which:
        rec=add_noise(clean,0.03,seed=5,correlation=1.5)
        f=fit(rec,truth,f"{name} corr white",start=start,check=True)
        for floor in (0.003,0.01,0.03,0.1):
            v=noise_view(rec,f.found,PLAIN,"correlated",floor=floor)
            fit(rec,truth,f"{name} corr floor {floor} memory {v.whitening.memory:.3f}",view=v,start=start,check=floor==0.01)
    if "blur" in which:
        fine=movie(name,cells=288)
        u=fine.slab()
        k=np.fft.fftfreq(288,1/288)*2*np.pi; kr=np.fft.rfftfreq(288,1/288)*2*np.pi
        s=1/96
        H=np.exp(-0.5*s**2*(k[:,None]**2+kr[None]**2))
        ub=np.stack([np.fft.irfft2(np.fft.rfft2(x)*H,s=(288,288)) for x in u])
        ub=ub.reshape(61,96,3,96,3).mean((2,4))
        plain=u.reshape(61,96,3,96,3)[:,:,1,:,1]
        def rec(a,seed=5): 
            return add_noise(Record(np.ascontiguousarray(a),dx=1/96,dt=5e-5,q=1.0,boundary="periodic"),0.03,seed=seed)
        fit(rec(plain),truth,f"{name} unblurred",start=start)
        fit(rec(ub),truth,f"{name} blurred, no operator",start=start,check=True)
        fit(rec(ub),truth,f"{name} blurred, operator",view=View(optics=Optics(blur=1/96,pixel=True)),start=start,check=True)
        fit(rec(ub),truth,f"{name} blurred, estimated",view=View(optics=Optics(blur="estimated",pixel=True)),start=start,check=True)
