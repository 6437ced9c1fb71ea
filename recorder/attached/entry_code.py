"""Code that an entered process runs in its main thread, for some microseconds; what takes longer has a thread.

No name of the program's is touched, or relied on. All of it is short, as there is little room (pending_call.py).
"""

from __future__ import annotations

import marshal
import os
from textwrap import indent
from types import CodeType

SWITCH_INTERVAL_US = 101
"""While a process is entered: a number that programs do not set, so that it is seen whether it is still ours."""

START = f"""\
m=__import__
s=m('sys')
c=m('posix')
t=m('_imp').create_builtin(m('_thread').__spec__)
def r(w,o,b,f,*a):
 try:f(*a)
 finally:b(0)
def start(*a):
 x=1e-6*{SWITCH_INTERVAL_US}
 i=s.getswitchinterval()
 n=m('itertools')
 p=m('_functools').partial
 g=n.takewhile(x.__eq__,n.starmap(s.getswitchinterval,((),)))
 b=p(m('_operator').contains,n.takewhile(s.setswitchinterval,n.compress((i,),g)))
 k=getattr(s.modules.get('tachograph.recorder._native'),'is_switch_interval',0)
 if k:k(i)
 else:c.register_at_fork(after_in_child=p(b,0))
 o={{0}}
 w=m('_weakref').ref(o,b)
 try:
  if i>x:s.setswitchinterval(x+5e-7)
  t.start_new_thread(r,(w,o,b,*a))
 except:
  o=0
  raise
"""
"""Defines ``start(FUNCTION, ARGUMENT...)``, which calls that in a thread; its switch interval is short meanwhile.

A thread that waits for the interpreter asks for it only after an interval in which that did not change hands, and each
short call that lets go of it and takes it back begins that interval anew: beside such calls it would wait for seconds.
The interpreter's own functions are used, whatever has their names in the module: those of gevent and eventlet are of
greenlets.

``b`` puts the interval back if it is still ours, the first time it is called, with anything. It is called at the end,
in the child of a fork, and where the thread cannot be started, by the end of ``o``. In the last two the program's main
thread does that, where a handler of the program's might run, and raise, between any two steps of Python's. So there are
none: ``b`` consists of the interpreter's functions in C. What is registered for forks stays, so that is done once: the
native module, which a process that was entered keeps, puts the interval back in the children of later forks.

Bare ``except`` clauses are ``except BaseException``, in texts that have little room (``simple_entry``).
"""

# The file is gone where the one who asked has given up; of that name there may be another user's by then. A handler of
# the program's may have forked since the main thread asked which process it is. Item 4 is ``st_uid``; False is not run.
IN_THREAD = """\
try:
 import os as t
 with open({path!r},'rb')as f:t=t.getpid()=={pid} and t.fstat(f.fileno())[4]==t.geteuid()and f.read()
 exec(t,{{}})
except:pass"""

# A handler of the program's may run here, as anywhere in its main thread, and raise: that is for the program, where it
# was, and no other exception is. Whether it is that of a handler, or one that has no handler of Python's:
_IS_A_HANDLERS = """\
def code(h):return getattr(h,'__code__',getattr(getattr(h,'__call__',0),'__code__',0))
g=__import__('_signal').getsignal
c=[code(g(n))for n in range(1,65)]
b=e.__traceback__
while b and b.tb_frame.f_code not in c:b=b.tb_next
b=b or not isinstance(e,Exception)
"""
_ENTRY = """\
try:
{start}
 def go():
  try:exec({in_thread!r},{{}})
  except Exception:pass
 if c.getpid()=={pid}:start(go)
except BaseException as e:
 exec({is_a_handlers!r})
 if b:raise
"""


def entry(script: str, pid: int) -> bytes:
    """The code for tg_entry_call (native/extension/entry_call.h) that has a thread run the file ``script``.

    Only in process ``pid``: a child that is forked before the call is made has it, too. What is raised before its
    ``try`` is a handler's, as there is nothing else.
    """
    text = _ENTRY.format(
        start=indent(START, " "),
        in_thread=IN_THREAD.format(path=script, pid=pid),
        is_a_handlers=_IS_A_HANDLERS,
        pid=pid,
    )
    return marshal.dumps(_short(compile(text, "<tachograph>", "exec", dont_inherit=True, optimize=2)))


def _short(code: CodeType) -> CodeType:
    """The same, all of it in line 1: 40 % less."""
    units = len(code.co_code) // 2
    lines = b"".join(bytes((_SAME_LINE | min(_UNITS, units - at) - 1, 0)) for at in range(0, units, _UNITS))
    constants = tuple(_short(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_linetable=lines, co_firstlineno=1, co_consts=constants)


_SAME_LINE, _UNITS = 0x80 | 13 << 3, 8
"""An entry of a table of lines (CPython's Objects/locations.md): so many units of code at most, of the line before."""


# PyRun_SimpleString does not raise: the trace function is called before the next instruction of the program, where one
# of its own would be lost by that. What comes before the ``try`` is lost.
_RAISE = f"""\
s=__import__('sys')
e=s.exc_info()[1]
{_IS_A_HANDLERS}
e=[e]
def t(*_):raise e.pop()
f=s._getframe(2)
if b and not s.gettrace():f.f_trace=t;f.f_trace_opcodes=True;s.settrace(t)"""
_SIMPLE_ENTRY = """\
try:__import__('builtins').exec({code!r},{{}})
except:
 try:{otherwise}
 except:pass
"""


def simple_entry(script: str, pid: int, room: int) -> str:
    """The text for PyRun_SimpleString, where the function has no place; shorter if need be, in so many bytes."""
    code = START + f"if c.getpid()=={pid}:start(exec,{IN_THREAD.format(path=script, pid=pid)!r},{{}})"
    otherwise = f"__import__('builtins').exec({_RAISE!r},{{}})"
    text = _SIMPLE_ENTRY.format(code=code, otherwise=otherwise)
    return text if len(os.fsencode(text)) < room else _SIMPLE_ENTRY.format(code=code, otherwise="pass")
