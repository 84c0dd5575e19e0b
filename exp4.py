from exp_like import *
import doublewell as dw, warnings
truth=named_law("sixth").effective(0.1)
u0=initial_field("circle",(32,32),1/32,epsilon=0.1)
clean=simulate(named_law("sixth"),u0,dx=1/32,dt=4e-4,frames=21,epsilon=0.1,substeps=12)
rec=add_noise(clean,0.01,seed=5)
from doublewell.identify import identify
t=time.time()
def show(r,label):
    print(label,round(err(r.law,truth),3),r.q,r.settings.boundary,r.diagnostics.warnings,round(time.time()-t),flush=True)
r=identify(Record(rec.slab(),dx=1/32,dt=4e-4),check=False); show(r,"no q, no boundary"); print(r.interval("q")); print(str(r)[:1500])
r=identify(rec.replace(mask=np.random.default_rng(0).random(rec.shape)>0.3),check=False); show(r,"mask")
times=np.cumsum(np.r_[0,np.random.default_rng(1).uniform(0.7,1.3,20)])*4e-4
