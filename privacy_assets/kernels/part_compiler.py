"""Compilation of parts, which only kernels call: their code is optimized and made native only within kernels.

Numba optimizes each function with everything that it calls, makes it native, and hands the result to each caller, where
all of that happens again: a function six calls below a kernel is optimized seven times. The first six results are never
run.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import Compiler

ENVIRONMENT = "_ZN08NumbaEnv"


class _PartLibrary(JITCodeLibrary):
    """The code of one part: simplified by itself, for the kernels into which it is linked, and not native."""

    is_inlined = False

    def add_ir_module(self, ir_module: Any) -> None:
        """Add the part itself, the only function that is not just declared."""
        for function in ir_module.functions:
            if self.is_inlined and not function.is_declaration:
                function.attributes.add("alwaysinline")
        super().add_ir_module(ir_module)

    def finalize(self) -> None:
        """Link the functions that the part calls, without optimizing; only names that Numba looks up become native."""
        self._raise_if_finalized()
        module = self._final_module
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            module.link_in(library._get_module_for_linking(), preserve=True)
        module.verify()
        self._finalize_dynamic_globals()
        names = [each.name for each in module.global_variables]
        if any(name.startswith(RuntimeLinker.PREFIX) for name in names):
            raise RuntimeError(f"Parts must not call each other in a circle, but {self.name} does.")
        # Any number of callers may have a copy, and they must not keep it.
        for function in module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = "linkonce_odr"
        self._shared_module = module
        environments = [f"@{name} = common global i64 0" for name in names if name.startswith(ENVIRONMENT)]
        self._final_module = binding.parse_assembly("\n".join(environments))
        self._final_module.triple = module.triple
        self._final_module.data_layout = module.data_layout
        self._final_module.name = module.name
        self._finalize_final_module()


class PartCompiler(Compiler):
    """Numba's compiler, which keeps the code of parts in separate libraries."""

    is_inlined = False

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own passes."""
        state = self.state
        if state.library is None:
            state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.is_inlined = self.is_inlined
            state.library.enable_object_caching()
        return super().define_pipelines()  # type: ignore[no-any-return]

    def _compile_core(self) -> Any:
        result = super()._compile_core()
        if (
            not self.state.flags.nrt
            and self.state.targetctx.data_model_manager[result.signature.return_type].contains_nrt_meminfo()
        ):
            raise TypeError(f"{self.state.func_id.func_qualname} returns an array, so it must be an `allocating_part`.")
        return result


class InlinedPartCompiler(PartCompiler):
    """The same compiler for parts that are inlined into each of their callers."""

    is_inlined = True
