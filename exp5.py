import sys,time
sys.path.insert(0,"src")
import numpy as np, jax
from doublewell.record import Record
from doublewell.law import Bernstein
from doublewell.evidence.likelihood import record_model
from doublewell.evidence.likelihood.compiled import compiled
from doublewell.dynamics import double_precision
import os
n=int(sys.argv[1]); deg=int(sys.argv[2]); b=sys.argv[3]
rec=Record(np.tanh(np.random.default_rng(0).standard_normal((21,n,n))*.1),dx=1/96,dt=5e-5,q=1.0,boundary=b)
m,c=record_model(rec,Bernstein(deg),3 if b=="open" else 1)
nu=np.stack([m.border_of(rec.slab())]); th=np.full((1,deg+1),800.)
with double_precision():
    t=time.time(); p=time.process_time()
    compiled().predict(m,nu,th,c).block_until_ready(); print("predict",time.time()-t,time.process_time()-p,flush=True)
    t=time.time(); compiled().predict(m,nu,th,c).block_until_ready(); print("again",time.time()-t)
    t=time.time(); p=time.process_time(); pt=compiled().begin(m,nu,th,rec.slab()[None],c); print("begin",time.time()-t,time.process_time()-p,flush=True)
    t=time.time(); p=time.process_time(); x=compiled().advance(m,pt,rec.slab()[None],c); jax.block_until_ready(x); print("advance",time.time()-t,time.process_time()-p,flush=True)
    t=time.time(); p=time.process_time(); x=compiled().advance(m,pt,rec.slab()[None],c); jax.block_until_ready(x); print("advance again",time.time()-t,int(x.iterations[0]),flush=True)
    t=time.time(); p=time.process_time(); x=compiled().sensitivity(m,nu,th,rec.slab()[None],c); jax.block_until_ready(x); print("sens",time.time()-t,time.process_time()-p,flush=True)
    t=time.time(); x=compiled().sensitivity(m,nu,th,rec.slab()[None],c); jax.block_until_ready(x); print("sens again",time.time()-t,flush=True)
