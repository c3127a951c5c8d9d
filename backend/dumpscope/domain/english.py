"""Every sentence the server writes about a comparison or a dump, in English, by its id (see `dumpscope.domain.phrases`).

frontend/src/texts/said.zh.json holds the same ids in Chinese; a test compares ids and placeholders.
"""

from __future__ import annotations

from typing import Final

from dumpscope.domain.overflow_words import OVERFLOW

RULES: Final[dict[str, str]] = {
    "rule.E-1": "Equal: every number, byte or hash that was stored agrees.",
    "rule.S-1": "Shapes differ.",
    "rule.S-2": "A tensor against something else.",
    "rule.N-1": "Non-finite values at different places.",
    "rule.V-1": "An argument differs.",
    "rule.I-1": "Integers or booleans differ.",
    "rule.T-1": "Tensors agree within the floor of their dtype.",
    "rule.T-2": "Tensors differ by more than the floor of their dtype.",
    "rule.M-1": "Statistics agree within the floor of their dtype.",
    "rule.M-2": "Statistics differ by more than the floor of their dtype.",
    "rule.H-1": "Hashes differ.",
    "rule.X-1": "Only the target has this item.",
    "rule.X-2": "Only the golden has this item.",
    "rule.X-3": "The tensor could not be read.",
    "rule.X-4": "No comparable number was stored.",
    "rule.X-5": "Uninitialised memory, or a buffer of a communication that nobody reads: not judged.",
    "rule.X-6": "Inside a fused call, which is compared at its boundary.",
    "rule.P-1": "Ptdbg: Cosine < 0.99 and MaxAbsErr > 0.001, or Cosine < 0.9, or MaxAbsErr > 1.",
    "rule.P-2": "Ptdbg: within its thresholds.",
    "rule.P-3": "Ptdbg: a statistic differs by more than half of its size.",
    "rule.P-4": "Ptdbg: one element, or zeros on one side only, has no cosine and so no label.",
    "rule.Q-1": "Msprobe: error.",
    "rule.Q-2": "Msprobe: warning.",
    "rule.Q-3": "Msprobe: pass.",
    "rule.R-1": "The target is no farther from the reference than the golden is.",
    "rule.R-2": "The target is farther from the reference than the golden is.",
    "rule.D-1": "Another dtype, numbers within the floor of the coarser one.",
}

_ITEM: Final[dict[str, str]] = {
    "item.measured": "{parts}.",
    "item.scored": "{parts} ({score} times the floor).",
    "item.one_not_finite": "{parts}: one side is not finite.",
    "item.nonfinite": "NaN or infinity disagrees at {disagree} of the positions (target has {target}, golden {golden}).",
    "item.integers": "{unequal} of {elements} integers or booleans differ; they must be equal.",
    "item.unreadable": "{error}",
    "item.farther": (
        "The target is {ratio} times as far from the reference as the golden ({measure}: target {target}, golden {golden})."
    ),
    "item.golden_farther": (
        "The golden is the one that is off: {ratio} times as far from the reference as the target "
        "({measure}: target {target}, golden {golden})."
    ),
    "item.no_farther": (
        "The target is no farther from the reference than the golden ({measure}: target {target}, golden {golden})."
    ),
    "distance.bulk": "relative distance",
    "distance.peak": "largest error by the largest magnitude",
    "part.unequal": "{unequal} of {elements} elements differ",
    "part.rel_l2": "relative L2 {value}",
    "part.max_abs": "largest error {value}",
    "part.cosine": "cosine {value}",
    "part.changed": "{name} {target} against {golden}",
    "part.changed_share": "{name} {target} against {golden} ({share} %)",
    "part.agree": "The stored statistics agree",
}

_NODE: Final[dict[str, str]] = {
    "side.target": "target",
    "side.golden": "golden",
    "node.no_partner": "This call has no partner on the other side.",
    "node.nothing": "Nothing was stored for this call that could be compared.",
    "node.agrees": "Everything compared agrees ({items}); the largest error is in {role}:",
    "node.worst": "{role} {path}:",
    "role.input": "input",
    "role.kwargs": "kwargs",
    "role.parameters": "parameters",
    "role.output": "output",
    "role.parameters_grad": "parameters_grad",
    "role.debug": "debug",
}

_LEFTOVER: Final[dict[str, str]] = {
    "leftover.inside": "Inside a fused call, compared at its boundary: {beside}.",
    "leftover.fused": "One call where the other side makes several, from {beside} on: it may be a fused form of them.",
    "leftover.decomposed": "One of several calls where the other side makes one, {beside}: they may be its decomposed form.",
    "leftover.replaced": "Other calls stand in its place on the other side, from {beside} on.",
    "leftover.one_backend": "Its name belongs to a backend, and the other side never makes it. It stands after {beside}.",
    "leftover.left_out": "The other dump holds no such calls, or this one by name only. It stands after {beside}.",
    "leftover.inserted": "Nothing stands in its place on the other side. It stands after {beside}.",
    "leftover.beginning": "the beginning",
}

_ORIGIN: Final[dict[str, str]] = {
    "origin.weight": "The weight {weight} differs before any operator used it.",
    "origin.weight_optimizer": (
        "Forward and gradients of step {before} agree, so its optimizer, or what ran between the two steps, made the difference."
    ),
    "origin.weight_backward": (
        "In step {before} the forward agrees and gradients differ, first at {gradient}: "
        "the weights follow from that backward pass."
    ),
    "origin.weight_outside": (
        "Nothing recorded since step {before} made the difference: it was changed outside of the recorded part."
    ),
    "origin.first_step": "Step {step} is the first that differs; those before it ({count}) agree.",
    "origin.on_ranks": "The same is seen on ranks {ranks}.",
    "origin.spread": "It reached other ranks: {ranks}.",
    "origin.spread_more": "It reached {count} other ranks, first these: {ranks}.",
    "origin.spread_rank": "rank {rank} through {node}",
    "origin.argument": "Called with another argument: {arguments}, and its output differs.",
    "origin.argument_faint": "Called with another argument: {arguments}, and what follows differs.",
    "origin.input": "This input differs and no dumped operator before it produced it.",
    "origin.hidden": "First visible difference; its cause was not dumped.",
    "origin.hidden_after": "First visible difference; its cause was not dumped and lies in or after {before}.",
    "origin.blind": "Of {places} the dump keeps the extremes only: other values between them would not show.",
    "origin.module": (
        "The inputs of this module agree and its output does not, and no dumped call inside it is at fault: "
        "the cause is in code of its own that was not dumped."
    ),
    "origin.computation": "{inputs}, the output does not.",
    "origin.computation_backward": "{inputs} and its forward agrees, the output does not.",
    "origin.overflow": "{inputs}, the output holds NaN or infinity that the golden does not.",
    "origin.overflow_backward": (
        "{inputs} and its forward agrees, the output holds NaN or infinity that the golden does not."
    ),
    "origin.born_backward": "{forward}, the forward behind it, holds none: it was born in the backward pass.",
    "origin.saturated": "In the {side}, {place} stands at the limit of {dtype} ({limit}): it was clipped there.",
    "origin.ties": "Only the order of indices differs: equal or nearly equal elements came out in another order.",
    "origin.accumulated": (
        "The error grows over {calls} calls from {low} floors at {first} to {high} at {last}, and at no call does it jump: "
        "here it passes the floor."
    ),
    "origin.collective": "The inputs of all {count} ranks agree; the result differs on rank {ranks}.",
    "origin.message": "What was sent agrees, what arrived on rank {ranks} does not.",
    "origin.absent_ranks": "What rank {ranks} sent is not known: it is not in the comparison.",
    "origin.more": "The same is seen in {count} more places.",
    "origin.structure_one": "1 call exists only in the {side}: {names}.",
    "origin.structure": "{count} calls exist only in the {side}: {names}.",
    "origin.names": "{names}",
    "origin.names_more": "{names} and {count} more",
    "origin.follows": "What follows receives data that differs.",
    "origin.some_differ": "Some values differ, none by enough to name a cause.",
    "origin.all_agree": "All values agree once the calls are aligned.",
    "inputs.none": "It has no comparable input",
    "inputs.equal_one": "The input is equal",
    "inputs.equal": "All {count} inputs are equal",
    "inputs.as_near": "All {count} inputs agree with the reference or with the golden",
    "inputs.agree": "All {count} inputs agree (worst {worst} times the floor)",
    "argument.kwarg": "{name} is {target} in the target and {golden} in the golden",
    "argument.place": "argument {name} is {target} in the target and {golden} in the golden",
    "shown.nonfinite": "{place}: NaN or infinity disagrees at {count} of the positions.",
    "shown.tensor": "{place}: {unequal} of {elements} elements differ, relative L2 {rel_l2}, largest {largest}.",
    "shown.tensor_at": (
        "{place}: {unequal} of {elements} elements differ, relative L2 {rel_l2}, largest {largest} at {index}."
    ),
    "shown.statistics": "{place}: {parts}.",
    "shown.shapes": "{place}: shape {target} against {golden}.",
    "shown.kinds": "{place}: a tensor in the {side} only.",
    "shown.hashes": "{place}: the hashes differ.",
}

_ADVICE: Final[dict[str, str]] = {
    "advice.computation": (
        "Run this operator alone on both devices with its dumped inputs: if it differs, its kernel is wrong."
    ),
    "advice.backward": (
        "The forward is right and the arriving gradient agrees: run this operator's backward alone on both devices."
    ),
    "advice.weight": "Load the same checkpoint on both sides and compare this parameter before the first step.",
    "advice.weight_optimizer": (
        "Compare learning rate, moments, clipping and scaling of gradients of that step: "
        "dump up to behind the optimizer (stop() after it)."
    ),
    "advice.weight_backward": "Look at the backward of that step at the gradient named: dump it with tensors.",
    "advice.weight_outside": (
        "Dump the step before as well, with backward and optimizer, "
        "or look at what changes weights between steps: loading, averaging."
    ),
    "advice.input": (
        "Make the two runs read the same data: this value differs before any dumped operator has touched it."
    ),
    "advice.overflow": (
        "Look at the operator's value range: finite inputs became NaN or infinite. Try it in a wider dtype."
    ),
    "advice.overflow_backward": (
        "Look where the derivative is not finite though the value is: a root, norm or log at 0, a division by a small number "
        "behind a where. Add an epsilon in that forward, then run its backward alone."
    ),
    "advice.saturated": (
        "Compare scale and loss scale of the two sides, and whether a device clips instead of overflowing (inf/nan mode); "
        "try this operator in a wider dtype."
    ),
    "own.sentence": "{en}",
    "advice.hidden": (
        "Dump again so that the cause is recorded: both levels (mix), every risk level, no list or scope; then compare again."
    ),
    "advice.ties": (
        "No kernel is at fault: make the order certain (a stable sort, a second key) or feed both sides one choice, "
        "and compare again."
    ),
    "advice.communication": (
        "Every rank's input agrees and the result does not: check the collective's group, order and reduce type."
    ),
    "advice.structure": (
        "The two scripts call different operators here: compare the code at this stack before any numbers."
    ),
    "advice.accumulated": (
        "No single operator is at fault, the error grows smoothly: compare at higher precision."
    ),
    "advice.configuration": (
        "The operator is called with different arguments: make them equal before looking for a wrong kernel."
    ),
    "advice.random": (
        "A random operator gives different numbers: fix the seeds on both sides (seed_all) and dump again."
    ),
}  # fmt: skip

_SETTING: Final[dict[str, str]] = {
    "setting.framework": (
        "The framework of the two dumps differs: target {target}, golden {golden}. "
        "Names and defaults of calls are those of each framework: match them by hand or by a mapping."
    ),
    "setting.task": (
        "The task of the two dumps differs: target {target}, golden {golden}. "
        "What only one task stores cannot be compared: dump both with the same task."
    ),
    "setting.level": (
        "The level of the two dumps differs: target {target}, golden {golden}. "
        "What only one level records has no partner: dump both at the same level."
    ),
    "setting.summary": (
        "The summary mode of the two dumps differs: target {target}, golden {golden}. "
        "Only what both hold is compared: dump both with the same summary mode."
    ),
    "setting.calls": (
        "{count} kinds of calls are in the {side} only ({names}): the dumps were taken at another risk level, list or scope. "
        "Dump both alike, or read such calls as unrecorded."
    ),
    "setting.change": "{name} {target} against {golden}",
    "setting.unset": "not set",
    "setting.versions": (
        "Versions differ: {changes}. Kernels change from version to version: "
        "run both on the same versions, or expect small differences everywhere."
    ),
    "setting.devices": (
        "The target ran on {target}, the golden on {golden}. Other hardware rounds in another way: "
        "take floors from a healthy pair (dumpscope calibrate), or compare each with a reference."
    ),
    "setting.seed": (
        "Seeds differ: {changes}. Random numbers (first weights, dropout, order of data) then differ: "
        "call seed_all alike in both runs."
    ),
    "setting.numerics": (
        "Numbers are computed in another way: {changes}. TF32, HF32 and reduced sums cost precision, and kernels that are not "
        "deterministic change from run to run: set them alike before you blame an operator."
    ),
    "setting.environment": (
        "Environment variables differ: {changes}. They choose kernels, the order of sums or what becomes of infinities: "
        "set them alike."
    ),
    "setting.precision": (
        "The precision of the statistics differs: target {target}, golden {golden}. "
        "Mean and Norm then differ by their own rounding: dump both with the same precision."
    ),
    "setting.risk_level": (
        "The risk level of the two dumps differs: target {target}, golden {golden}. "
        "Calls of one level only have no partner: dump both at the same risk level."
    ),
    "setting.data_mode": (
        "The data_mode of the two dumps differs: target {target}, golden {golden}. "
        "What one side left out has no partner: dump both with the same data_mode."
    ),
    "setting.selection": (
        "The two dumps were asked for different calls: {changes}. What only one of them holds has no partner: dump both alike."
    ),
    "setting.parts": (
        "The {side} holds no {parts}, the other side does: it was dumped with another data_mode, or did not run that part. "
        "Dump both alike; what one side lacks is not compared."
    ),
    "part.forward": "forward calls",
    "part.backward": "backward calls",
    "part.input": "inputs",
    "part.output": "outputs",
    "setting.dtypes": (
        "Precision differs: {count} of {total} tensors have another dtype (mostly target {target}, golden {golden}); "
        "differences up to the coarser one are expected. Compare each with a reference in higher precision."
    ),
}

MEASURE: Final = "error score (1 = floor)"
"""What errors in figures are."""

_FIGURE: Final[dict[str, str]] = {
    "measure.score": MEASURE,
    "measure.none": "not compared",
    "measure.value": "{value}",
    "figure.no_api": "This node is no call of an API or a module.",
    "figure.no_nodes": "This step and rank has no nodes.",
    "figure.no_items": "This node holds no items.",
    "figure.not_here": (
        "The dump's tensor files are not here: there is no folder {path}. What was measured is stored; values and their"
        " distribution need the dump at that place."
    ),
    "figure.unreadable": "The tensor cannot be shown: {error}",
    "figure.shapes": "The shapes {target} and {golden} differ, so the two cannot be compared element by element.",
    "figure.one_side": "Only the {side} has this item.",
    "figure.no_tensors": (
        'No tensors were dumped for this pair. Dump again with "task": "tensor" and "list": ["{node}"] to see it.'
    ),
    "figure.item": "{item}:",
    "order.none": "None of the {nodes} nodes has a compared output.",
    "order.all": "{measure} of {nodes} nodes in call order.",
    "order.largest": "Largest output error {error} at {name}, place {place}.",
    "order.first": "First output above {floor}: {name}, place {place}.",
    "order.no_first": "No output above {floor}.",
    "order.origins": "Origins: {names}.",
    "order.backward": "The backward pass starts at place {place}.",
    "order.selected": "Selected: {name}, input {input}, output {output}.",
    "order.bucket": "Each point is the worst of {bucket} nodes.",
    "calls.none": "None of the {calls} calls of {api} could be compared.",
    "calls.compared": "{api}: {compared} of {calls} calls compared.",
    "calls.spread": (
        "{measure}: median {median}, quartiles {first} to {third}, whiskers {low} to {high}, largest {largest}."
    ),
    "calls.above": "{above} above {floor}.",
    "calls.current": "This call: {name} at place {place}, {error}.",
    "values.empty": "Both tensors are empty.",
    "values.none": "{elements} elements a side, none of them finite.",
    "values.range": "{elements} elements a side between {low} and {high}.",
    "values.differ": "{equal} are equal; the others differ by at most {most}.",
    "values.equal": "{equal} are equal.",
    "values.nonfinite": "Apart from the {side} histogram: {nan} nan, {inf} inf, {minus} -inf.",
    "quantiles.equal": "All quantiles are equal.",
    "quantiles.worst": "Quantiles part most at {level}: target {target}, golden {golden}.",
    "quantiles.sampled": "Quantiles are of an even sample of {sampled} elements a side, their ends of all.",
    "density.none": "None of the {elements} positions is finite on both sides.",
    "density.all": (
        "Of {elements} positions {equal} are equal (on the diagonal); the target is larger at {above} and smaller at {below}."
    ),
    "density.phase": "Differing by their phase alone: {count}.",
    "density.range": "Values lie between {low} and {high}.",
    "density.skipped": "Not finite on at least one side, and so without a place here: {count}.",
    "map.rows": "rows",
    "map.columns": "columns",
    "map.indices": "indices",
    "map.equal": "All elements are equal.",
    "map.only": "Only {what} {indices} of {size} differ (dim {axis}).",
    "map.outstanding": (
        "Of the {size} {what} of dim {axis}, {indices} stand out: up to {most} where the median of all is {typical}."
    ),
    "map.everywhere": "The difference is spread over all dimensions.",
    "map.largest": "Largest difference {most}.",
    "map.lost": "NaN or infinite on one side only, or differing in which: {count}.",
    "map.cells": "Dim {axis} is drawn as {cells} cells of its {size} indices.",
    "peek.at": "[{index}]: {values}.",
    "peek.target": "target {value}",
    "peek.golden": "golden {value}",
    "peek.equal": "equal",
    "peek.difference": "difference {value}",
    "apis.none": "None of the {apis} APIs has a compared call.",
    "apis.all": "{measure} of the calls of {apis} APIs, the largest first.",
    "apis.worst": "Worst: {api} with {error} at {name}.",
    "apis.above": "{above} have a call above {floor}.",
    "apis.unseen": "{unseen} have no compared call.",
    "apis.left": "{left} with smaller errors are not drawn.",
    "apis.current": "This call is of {api}, number {rank} by largest error.",
    "runs.all": "{name}, steps: {steps}, ranks: {ranks}.",
    "runs.none": "It was compared in none of them.",
    "runs.worst": "Largest error {error} in step {step} on rank {rank}.",
    "runs.first": "First above {floor} in step {step} on rank {rank}.",
    "runs.no_first": "Nowhere above {floor}.",
    "runs.current": "Here (step {step}, rank {rank}): {error}.",
    "runs.left": "Lines are drawn for the {drawn} worst ranks.",
    "errors.none": "No element is finite on both sides.",
    "errors.equal": "{equal} of {elements} elements are equal.",
    "errors.absolute": "Largest absolute error in {largest}; most differing elements ({count}) in {bin}.",
    "errors.relative": "Largest relative error in {largest}; most differing elements ({count}) in {bin}.",
}

_PLAN: Final[dict[str, str]] = {
    "plan.given": "The sizes were given by the user.",
    "plan.shards": "The {side} has {shards} shards: its weights differ from rank to rank and are cut along one dimension.",
    "plan.stages": "The {side} has {stages} stages: together they hold the {layers} layers.",
    "plan.replicas": "The {side} has {replicas} replicas: they hold equal weights.",
    "plan.ratio": "A cut dimension of the golden's weights is {ratio} times as long as the target's.",
}

ENGLISH: Final[dict[str, str]] = {
    **RULES, **_ITEM, **_NODE, **_LEFTOVER, **_ORIGIN, **_ADVICE, **_SETTING, **_FIGURE, **_PLAN,
    **OVERFLOW,
}  # fmt: skip
"""Templates for `str.format`; an enumeration is joined by commas."""
