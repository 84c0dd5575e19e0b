import sys, time, os
sys.path.insert(0,"src")
import numpy as np
from dataclasses import replace
from doublewell.law import named_law, Bernstein, Law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate
from doublewell.evidence.likelihood import *
from doublewell.identify.trajectory_road import trajectory_fits
U=np.linspace(-1,1,2001)
def err(law,truth): 
    return 100*np.linalg.norm(law.force(U)-truth.force(U))/np.linalg.norm(truth.force(U))
_m={}
def movie(name,geo="nonconvex",cells=96,eps=0.03,frames=61):
    k=(name,geo,cells)
    if k not in _m:
        u0=initial_field(geo,(cells,cells),1/cells,epsilon=eps)
        _m[k]=simulate(named_law(name),u0,dx=1/cells,dt=5e-5,frames=frames,epsilon=eps,substeps=12)
    return _m[k]
def fit(rec,truth,label,view=PLAIN,start=None,check=False,degree="auto",constraint="bernstein"):
    t=time.time()
    try:
        f=trajectory_fits([rec],start[None],degree=degree,constraint=constraint,ridge=None,check=check,view=view)[0]
    except Exception as e:
        print(label,"FAILED",type(e).__name__,str(e)[:300],flush=True); return None
    m=f.found
    extra={n:(float(m.beside.mean(f.law.family.elevation(m.evidence.family)@f.law.coefficients)[k]),float(1/m.beside.root[k,k])) for k,n in enumerate(m.beside.names)}
    crb=None
    R=m.evidence.blocks[0].triangle[:m.evidence.family.size,:m.evidence.family.size]
    p5=Bernstein(5).elevation(m.evidence.family) if m.evidence.family.degree==8 else np.eye(m.evidence.family.size)
    C=np.linalg.pinv((R@p5).T@(R@p5)); B5=Bernstein(p5.shape[1]-1).features(U)
    crb=100*np.sqrt(np.sum(B5*(C@B5)))/np.linalg.norm(truth.force(U))
    e5=err(Law(Bernstein(5),f.posterior.path[5].coefficients),truth) if len(f.posterior.path)>5 else float('nan')
    print(f"{label}: e_G {err(f.law,truth):.3f} m5 {e5:.2f} crb5 {crb:.2f} noise {m.noise:.4f} {m.status[:60]} steps {len(m.steps)} cg {[s.iterations for s in m.steps]} sub {m.substeps} mesh {f.resolution.mesh_size:.2f} time {f.resolution.time_size:.3f} extra {extra} {time.time()-t:.1f}s {f.adequacy.verdict if f.adequacy else ''} {f.adequacy.words[:1] if f.adequacy else ''}",flush=True)
    return f
