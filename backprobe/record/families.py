"""The errors and warnings of torch's autograd that we know, by what they say.

A family is a kebab-case word for one cause. The texts are torch 2.13's, without what changes from program to program
and without "(Triggered internally at ...)"; the first one that is found in a message names it.
"""

from __future__ import annotations

import re
from typing import Final

FAMILIES: Final[tuple[tuple[str, str], ...]] = (
    ("freed-graph", r"Trying to backward through the graph a second time"),
    ("changed-in-place", r"has been modified by an inplace operation"),
    ("view-of-leaf-changed", r"a view of a leaf Variable that requires grad is being used in an in-place operation"),
    ("leaf-changed", r"a leaf Variable that requires grad is being used in an in-place operation"),
    ("leaf-moved-into-graph", r"leaf variable has been moved into the graph interior"),
    ("out-argument", r"functions with out=\.\.\. arguments don't support automatic differentiation"),
    ("hooked-module-view-changed", r"Output \d+ of BackwardHookFunction is a view and is being modified inplace"),
    ("view-of-custom-function-changed", r"This view was created inside a custom Function"),
    (
        "view-of-several-changed",
        r"is a view and is being modified inplace\. This view is the output of a function that",
    ),
    (
        "view-changed",
        r"is a view and (?:is being modified|its base or another view of its base has been modified) inplace",
    ),
    ("view-of-no-grad-changed", r"A view was created in (?:no_grad|inference) mode and (?:is being|its base)"),
    (
        "overlapping-memory-changed",
        r"more than one element of the written-to tensor refers to a single memory location",
    ),
    ("complex-root", r"grad can be (?:implicitly )?created only for real scalar outputs"),
    ("not-scalar", r"grad can be (?:implicitly )?created only for scalar outputs"),
    ("no-history", r"does not require grad and does not have a grad_fn"),
    ("input-without-grad", r"One of the differentiated Tensors does not require grad"),
    ("unused-input", r"appears to not have been used in the graph|returned for the differentiated Tensor.* is None"),
    ("empty-inputs", r"`inputs` argument to `(?:backward|grad)\(\)` cannot be empty|grad requires non-empty inputs"),
    ("retain-grad-refused", r"can't retain_grad on Tensor that has requires_grad=False"),
    ("flag-of-non-leaf", r"you can only change requires_grad flags of leaf variables"),
    ("detach-view-in-place", r"Can't detach views in-place"),
    ("copy-of-non-leaf", r"Only Tensors created explicitly by the user .* support the deepcopy protocol"),
    ("numpy-of-tracked", r"Can't call numpy\(\) on Tensor that requires grad"),
    ("number-of-tracked", r"Converting a tensor with requires_grad=True to a scalar"),
    ("integer-requires-grad", r"[Oo]nly Tensors of floating point (?:and complex )?dtype can require gradients"),
    ("inference-tensor-saved", r"Inference tensors cannot be saved for backward"),
    ("inference-tensor-requires-grad", r"Setting requires_grad=True on inference tensor outside InferenceMode"),
    ("inference-tensor-changed", r"Inplace update to inference tensor outside InferenceMode"),
    ("inference-tensor-version", r"Inference tensors do not track version counter"),
    ("grad-of-other-dtype", r"attempting to assign a gradient with dtype|assigned grad has data of a different type"),
    ("grad-of-other-shape", r"attempting to assign a gradient of size|assigned grad has data of a different size"),
    (
        "grad-on-other-device",
        r"attempting to assign a gradient with device|assigned grad has data located on a different",
    ),
    ("grad-is-no-tensor", r"assigned grad expected to be a Tensor or None"),
    ("root-gradient-of-other-shape", r"Mismatch in shape: grad_output\["),
    (
        "root-gradient-of-other-dtype",
        r"For complex Tensors, both grad_output and output are required to have the same dtype",
    ),
    ("non-leaf-grad-read", r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed"),
    ("grad-cycle", r"Using backward\(\) with create_graph=True will create a reference cycle"),
    ("scheduler-first", r"Detected call of `lr_scheduler\.step\(\)` before `optimizer\.step\(\)`"),
    ("custom-gradient-shape", r"returned an invalid gradient at index"),
    ("custom-gradient-count", r"returned an incorrect number of gradients"),
    ("once-differentiable", r"trying to differentiate twice a function that was marked with @once_differentiable"),
    ("custom-without-backward", r"You must implement either the backward or vjp method"),
    ("no-derivative", r"derivative for '?.*'? is not implemented|the derivative .* is not implemented"),
    (
        "legacy-function",
        r"Legacy autograd function with non-static forward|should not be instantiated\. Methods on autograd",
    ),
    ("anomaly-nan", r"returned nan values in its \d\w* output"),
    ("anomaly-mode", r"Anomaly Detection has been enabled"),
    ("anomaly-forward-frames", r"Error detected in \w+\.|No forward pass information available"),
    ("checkpoint-mode-not-given", r"the use_reentrant parameter should be passed explicitly"),
    ("checkpoint-without-grad", r"None of the inputs have requires_grad=True"),
    ("checkpoint-mismatch", r"(?:torch\.utils\.checkpoint|checkpoint): .*(?:different|mismatch|Recomputed values)"),
    ("checkpoint-with-inputs", r"(?:Checkpointing|checkpoint\(\)) .*is not compatible with \.grad\(\)"),
    ("partial-module-hook", r"Using (?:a )?non-full backward hook"),
    ("clip-of-non-finite", r"The total norm of order .* is non-finite, so it cannot be clipped"),
    ("unscaled-twice", r"unscale_\(\) has already been called on this optimizer"),
    ("unscaled-too-late", r"unscale_\(\) is being called after step\(\)"),
    ("stepped-twice", r"step\(\) has already been called since the last update\(\)"),
    ("no-scaled-gradients", r"No inf checks were recorded for this optimizer"),
    ("optimizer-of-non-leaf", r"can't optimize a non-leaf Tensor"),
    ("optimizer-of-nothing", r"optimizer got an empty parameter list"),
    ("parameter-in-two-groups", r"some parameters appear in more than one parameter group"),
    ("tensor-of-tensor", r"To copy construct from a tensor, it is recommended to use"),
    ("hook-refused", r"cannot register a hook on a tensor that doesn't require gradient"),
    ("accumulate-hook-of-non-leaf", r"post accumulate grad hooks cannot be registered on non-leaf tensors"),
    ("hook-changed-shape", r"hook '.*' has changed the (?:size|type|dtype|device) of value"),
    ("data-of-other-kind", r"data set to a tensor that requires gradients must be floating point or complex"),
    (
        "dtypes-differ",
        r"to have the same dtype, but got|expected scalar type \w+ but found|mat1 and mat2 must have the same",
    ),
    (
        "shapes-differ",
        r"shapes cannot be multiplied|must match the size of tensor|size mismatch|must match the existing size",
    ),
    ("devices-differ", r"Expected all tensors to be on the same device"),
    ("function-gave-no-tensor", r"The outputs of the user-provided function given to \w+ must be"),
    ("probabilities-out-of-range", r"all elements of (?:input|target) should be between 0 and 1"),
    ("loss-broadcasts", r"Using a target size \(.*\) that is different to the input size"),
    ("unused-parameters", r"Expected to have finished reduction in the prior iteration"),
    ("out-of-memory", r"out of memory|can't allocate memory"),
)
"""Family and the expression that its messages match, the more special before the more general."""

_COMPILED: Final = tuple((family, re.compile(text, re.DOTALL)) for family, text in FAMILIES)
# a message may be a stranger's: nothing here begins inside a run of blanks or digits that it has seen (0.2 s of 8192)
_INTERNAL: Final = re.compile(r"(?<!\s)\s*+\(Triggered internally at [^)]*\)")

_FACTS: Final = tuple(
    re.compile(text, re.DOTALL)
    for text in (
        (
            r"inplace operation: \[(?P<type>\S+) \[(?P<shape>[\d, ]*)\]\]"
            r"(?:, which is output (?P<output>\d+) of (?P<op>[\w:]+),)?"
            r" is at version (?P<version>\d+); expected version (?P<expected_version>\d+) instead"
        ),
        r"Output (?P<output>\d+) of (?P<op>\w+) is a view",
        (
            r"[Ff]unction '?(?P<op>\w+)'? returned an invalid gradient at index (?P<index>\d+)"
            r" - got \[?(?P<shape>[\d, ]*)\]?"
            r"(?: but expected shape compatible with \[(?P<expected_shape>[\d, ]*)\])?"
        ),
        (
            r"function (?P<op>\w+) returned an incorrect number of gradients"
            r" \(expected (?P<expected>\d+), got (?P<got>\d+)\)"
        ),
        r"Function '(?P<op>\w+)' returned nan values in its (?P<output>\d+)\w* output",
        (
            r"grad_output\[(?P<index>\d+)\] has a shape of torch\.Size\(\[(?P<shape>[\d, ]*)\]\)"
            r" and output\[\d+\] has a shape of torch\.Size\(\[(?P<expected_shape>[\d, ]*)\]\)"
        ),
        (
            r"grad_output\[(?P<index>\d+)\] has a dtype of (?P<dtype>[\w.]+) and output\[\d+\] has a dtype of"
            r" (?P<expected_dtype>\w+(?:\.\w+)*)"
        ),
        r"gradient of size '\[(?P<shape>[\d, ]*)\]' to a tensor of size '\[(?P<expected_shape>[\d, ]*)\]'",
        r"gradient with dtype '(?P<dtype>\w+)' to a tensor with grad_dtype '(?P<expected_dtype>\w+)'",
        r"differentiated Tensor at index (?P<index>\d+) appears",
        r"element (?P<index>\d+) of tensors does not require grad",
        r"to have the same dtype, but got: (?P<dtype>[\w.]+) != (?P<expected_dtype>[\w.]+)",
        (
            r"target size \(torch\.Size\(\[(?P<expected_shape>[\d, ]*)\]\)\) that is different to the input size"
            r" \(torch\.Size\(\[(?P<shape>[\d, ]*)\]\)\)"
        ),
        r"mat1 and mat2 shapes cannot be multiplied \((?P<shape>\d+x\d+) and (?P<expected_shape>\d+x\d+)\)",
        r"total norm of order (?P<norm_type>[\w.]+) for",
        r"real scalar outputs but got (?P<dtype>[\w.]+)",
        r"given outputs of the user-provided function has type <class '(?P<type>[\w.]+)'>",
        r"hook '(?P<hook>.*?)' has changed",
    )
)


def family_of(message: str) -> str | None:
    """Which family a message of torch is of; None for any other text."""
    text = _INTERNAL.sub("", message)
    return next((family for family, expression in _COMPILED if expression.search(text)), None)


def facts_in(message: str) -> dict[str, str]:
    """Extract the numbers and names that a message has.

    Keys: "op", "output", "index", "version", "expected_version", "shape", "expected_shape", "dtype", "expected_dtype",
    "type", "expected", "got", "norm_type", "hook"; those that the message does not tell are left out.
    """
    for expression in _FACTS:
        found = expression.search(message)
        if found is not None:
            return {key: text for key, text in found.groupdict().items() if text}
    return {}
