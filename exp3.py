from exp_like import *
from doublewell.evidence.likelihood.noise import noise_view, outlier_mask
import traceback, sys
truth=named_law("sixth").effective(0.1)
u0=initial_field("circle",(32,32),1/32,epsilon=0.1)
clean=simulate(named_law("sixth"),u0,dx=1/32,dt=4e-4,frames=21,epsilon=0.1,substeps=12)
rec=add_noise(clean,0.01,seed=5); start=np.full(3,truth.force(np.array(-0.5)).item()/(0.5*0.75))
w=sys.argv[1]
if w=="q": fit(rec.replace(q=1.2),truth,"q",view=View(q_free=True),start=start/1.2,check=True)
if w=="blur":
    k=np.fft.fftfreq(32,1/32)*2*np.pi; kr=np.fft.rfftfreq(32,1/32)*2*np.pi
    H=np.exp(-0.5*(1/32)**2*(k[:,None]**2+kr[None]**2))
    ub=np.stack([np.fft.irfft2(np.fft.rfft2(x)*H,s=(32,32)) for x in clean.slab()])
    r2=add_noise(clean.replace(ub),0.01,seed=5)
    fit(rec,truth,"plain",start=start)
    fit(r2,truth,"none",start=start)
    fit(r2,truth,"known",view=View(optics=Optics(blur=1/32)),start=start)
    fit(r2,truth,"estimated",view=View(optics=Optics(blur="estimated")),start=start)
    fit(r2,truth,"refine",view=View(optics=Optics(blur=1/32,refine=2)),start=start)
if w=="corr":
    r3=add_noise(clean,0.01,seed=5,correlation=1.5)
    f=fit(r3,truth,"white",start=start)
    v=noise_view(r3,f.found,PLAIN,"correlated")
    f=trajectory_fits([r3],start[None],degree="auto",constraint="bernstein",ridge=None,check=True,view=v)[0]
    print(f.adequacy)
