"""A page on this machine for people who do not use a terminal: `rssc app`.

`launch` binds the address and starts the server; `server` answers requests, `guard` lets only the page's own through;
`run` and `runs` keep what there is as plain files; `queue` has one job at a time done by a process of its own
(`processes`), and `work` is what that process does. `pages` has the page. Only `work` loads the solver.
"""
