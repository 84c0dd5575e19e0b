from exp_like import *
laws=["sixth","exponential"]
for name in laws:
    truth=named_law(name).effective(0.03)
    start=truth.coefficients if False else np.full(3,truth.force(np.array(-0.5)).item()/(0.5*0.75))
    full=add_noise(movie(name),0.03,seed=5)
    fit(full,truth,f"{name} plain",start=start,check=True)
    win=Record(np.ascontiguousarray(full.slab()[:,2:66,8:72]),dx=1/96,dt=5e-5,q=1.0,boundary="open")
    fit(win,truth,f"{name} window",start=start,check=True)
    if name=="sixth":
        for b in ("neumann",):
            fit(win.replace(boundary=b),truth,f"{name} window as {b}",start=start,check=True)
    rng=np.random.default_rng(1)
    mask=rng.random(full.shape)>0.3
    fit(full.replace(mask=mask),truth,f"{name} mask 30",start=start,check=True)
    hole=np.ones((96,96),bool); hole[20:40,38:58]=False
    fit(full.replace(mask=hole),truth,f"{name} hole",start=start,check=True)
    fit(full.replace(q=1.2),truth,f"{name} q",view=View(q_free=True),start=start/1.2,check=True)
