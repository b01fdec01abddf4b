"""Declare the optional compiled kernels; everything else is in pyproject.toml.

A missing compiler or a failed compilation is a warning, not an error: the NumPy twins then do the work.
"""

import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# The oldest Python whose stable ABI has the buffer protocol; it is also the oldest that is supported.
ABI = "0x030B0000"
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


class BuildKernel(build_ext):
    """Set the flags by compiler: scores are equal to the twin's only without contraction of a * b + c."""

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = ["/O2", "/fp:precise"]
        else:
            ext.extra_compile_args = ["-O3", "-ffp-contract=off"]
            ext.libraries = [] if sys.platform == "win32" else ["m"]
        super().build_extension(ext)


def kernel(module: str) -> Extension:
    """The kernel of one C file that lies where the module would."""
    return Extension(
        module,
        sources=[f"src/{module.replace('.', '/')}.c"],
        define_macros=[("Py_LIMITED_API", ABI)],
        py_limited_api=True,
        optional=True,
    )


# The kernels rely on the interpreter lock; where there is none the twins are used.
KERNELS = [] if FREE_THREADED else [kernel("perdure.lexical._kernel"), kernel("perdure.vectors._scan")]

setup(
    ext_modules=KERNELS,
    cmdclass={"build_ext": BuildKernel},
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
