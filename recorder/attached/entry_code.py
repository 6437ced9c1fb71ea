"""Code that an entered process runs in its main thread, for some microseconds; what takes longer has a thread.

No name of the program's is touched, or relied on. All of it is short, as there is little room (pending_call.py).
"""

from __future__ import annotations

import os

SWITCH_INTERVAL_US = 101
"""While a process is entered: a number that programs do not set, so that it is seen whether it is still ours."""

START = f"""\
s=__import__('sys')
t=__import__('_imp').create_builtin(__import__('_thread').__spec__)
k=__import__('_thread')._local()
def put(s,i):s.getswitchinterval()==1e-6*{SWITCH_INTERVAL_US} and s.setswitchinterval(i)
def calm(put,s,i):
 try:yield
 finally:put(s,i)
def keep(i):
 c=calm(put,s,i)
 next(c)
 k.calm=c
def run(i,f,*a):
 try:
  keep(i)
  f(*a)
 finally:
  put(s,i)
  globals().pop('k')
def start(*a):
 i=s.getswitchinterval()
 try:
  keep(i)
  if i>1e-6*{SWITCH_INTERVAL_US}:s.setswitchinterval(1e-6*{SWITCH_INTERVAL_US}.5)
  t.start_new_thread(run,(i,*a))
 except BaseException:
  k.calm=0
  raise
"""
"""Defines ``start(FUNCTION, ARGUMENT...)``, which calls that in a thread; its switch interval is short meanwhile.

A thread that waits for the interpreter asks for it only after an interval in which that did not change hands, and each
short call that lets go of it and takes it back begins that interval anew: beside such calls it would wait for seconds.
The interval is put back at the end, before ``k`` goes, for a fork may come in between; and in the child of a fork with
what the thread, or the one that started it, had in it. The interpreter's own functions are used, whatever has their
names in the module: those of gevent and eventlet are of greenlets.
"""

# The file is gone where the one who asked has given up; of that name there may be another user's by then.
IN_THREAD = """\
try:
 with open({path!r},'rb')as f:t=__import__('os');t=t.fstat(f.fileno()).st_uid==t.geteuid()and f.read()or''
 exec(t)
except OSError:pass"""

# A handler of the program's may run here, as anywhere in its main thread, and raise: that is for the program, where it
# was, and no other exception is. The trace function is called before the next instruction there; one of the program's
# own would be lost by that.
_RAISE = """\
s=__import__('sys')
g=__import__('_signal').getsignal
e=[s.exc_info()[1]]
def code(h):return getattr(h,'__code__',getattr(getattr(h,'__call__',0),'__code__',0))
c=[code(g(n))for n in range(1,65)]
b=e[0].__traceback__
while b and b.tb_frame.f_code not in c:b=b.tb_next
def t(*_):raise e.pop()
f=s._getframe(2)
if(b or not isinstance(e[0],Exception))and not s.gettrace():f.f_trace=t;f.f_trace_opcodes=True;s.settrace(t)"""
_IN_MAIN = """\
try:__import__('builtins').exec({code!r},{{}})
except BaseException:
 try:{otherwise}
 except BaseException:pass
"""


def in_main(script: str, room: int) -> str:
    """The text for the main thread that has a thread run the file ``script``; shorter if need be, in so many bytes."""
    code = START + f"start(exec,{IN_THREAD.format(path=script)!r},{{}})"
    otherwise = f"__import__('builtins').exec({_RAISE!r},{{}})"
    text = _IN_MAIN.format(code=code, otherwise=otherwise)
    return text if len(os.fsencode(text)) < room else _IN_MAIN.format(code=code, otherwise="pass")
