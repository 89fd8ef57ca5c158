"""Fitted estimators as ONNX graphs of standard operators.

`export` writes a file and needs no other package. If skl2onnx is installed, importing this module registers the
estimators with it, so that `to_onnx` converts pipelines that contain them.
"""

from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from ._estimators import SparseKernelPCA
from ._novelty import KernelNovelty

__all__ = ["export", "to_bytes"]

# Numbers of ONNX types.
FLOAT, DOUBLE = 1, 11


def to_bytes(estimator, *, double=False):
    """Convert a fitted estimator to the bytes of an ONNX file.

    Parameters
    ----------
    estimator : SparseKernelPCA or KernelNovelty
        A fitted estimator; its kernel must be one of the core, not a function or a matrix.
    double : bool, default=False
        64-bit inputs, arithmetic and outputs. Otherwise inputs and outputs have 32 bits, and so has the arithmetic
        if that is accurate enough.

    Returns
    -------
    graph : bytes
        The input is ``X``, of shape (n_samples, n_features); the outputs are ``features``, ``score`` (higher is more
        novel: minus `score_samples`), ``t2`` if components are uncorrelated, ``p_value`` (too high by less than
        0.01 and less than 5 % of itself) and ``alarm``, and ``log_likelihood`` for models with a density.
    """
    check_is_fitted(estimator)
    return estimator._model.export("onnx", double=double)


def export(estimator, path, *, double=False):
    """Write the graph of a fitted estimator to an ONNX file.

    Parameters
    ----------
    estimator : SparseKernelPCA or KernelNovelty
        A fitted estimator.
    path : str or path-like
        The file.
    double : bool, default=False
        As in `to_bytes`.
    """
    Path(path).write_bytes(to_bytes(estimator, double=double))


def _register():
    """Registers the converters of the estimators with skl2onnx, if it is installed."""
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType
    except ImportError:
        return

    def number(operator):
        """Returns the tensor type of the outputs: 64 bits if the input has 64 bits."""
        return DoubleTensorType if isinstance(operator.inputs[0].type, DoubleTensorType) else FloatTensorType

    def shape_of_features(operator):
        rows = operator.inputs[0].type.shape[0]
        operator.outputs[0].type = number(operator)([rows, operator.raw_operator.n_components_])

    def shape_of_novelty(operator):
        rows = operator.inputs[0].type.shape[0]
        operator.outputs[0].type = Int64TensorType([rows])
        operator.outputs[1].type = number(operator)([rows, 1])

    def convert_features(scope, operator, container):
        _insert(scope, operator, container, {"features": operator.outputs[0].full_name})

    def convert_novelty(scope, operator, container):
        score, alarm = scope.get_unique_variable_name("score"), scope.get_unique_variable_name("alarm")
        _insert(scope, operator, container, {"score": score, "alarm": alarm})
        dtype = DOUBLE if number(operator) is DoubleTensorType else FLOAT
        # score_samples is minus the score, decision_function adds the threshold: label 1 is an inlier, -1 an outlier.
        constant = {}
        for name, kind, shape, values in [
            ("limit", dtype, [], [-operator.raw_operator.offset_]),
            ("column", 7, [1], [1]),
            ("minus_two", 7, [], [-2]),
            ("plus_one", 7, [], [1]),
        ]:
            constant[name] = scope.get_unique_variable_name(name)
            container.add_initializer(constant[name], kind, shape, values)

        def node(op_type, inputs, output=None, **attributes):
            output = output or scope.get_unique_variable_name(op_type.lower())
            name = scope.get_unique_operator_name(op_type)
            container.add_node(op_type, inputs, output, op_version=13, name=name, **attributes)
            return output

        decision = node("Sub", [constant["limit"], score])
        node("Unsqueeze", [decision, constant["column"]], operator.outputs[1].full_name)
        twice = node("Mul", [node("Cast", [alarm], to=7), constant["minus_two"]])
        node("Add", [twice, constant["plus_one"]], operator.outputs[0].full_name)

    update_registered_converter(SparseKernelPCA, "SkpcaSparseKernelPCA", shape_of_features, convert_features)
    update_registered_converter(KernelNovelty, "SkpcaKernelNovelty", shape_of_novelty, convert_novelty)


def _insert(scope, operator, container, outputs):
    """Adds the estimator's graph to the container: outputs get the given names, everything else a unique name."""
    import onnx

    source = operator.inputs[0]
    double = type(source.type).__name__ == "DoubleTensorType"
    graph = onnx.load_from_string(to_bytes(operator.raw_operator, double=double)).graph
    names = {"X": source.full_name, **outputs}
    wanted = needed(graph, outputs)

    def renamed(name):
        if name not in names:
            names[name] = scope.get_unique_variable_name(f"skpca_{name}")
        return names[name]

    for node in wanted:
        inputs, results = [renamed(name) for name in node.input], [renamed(name) for name in node.output]
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        name = scope.get_unique_operator_name(node.op_type)
        container.add_node(node.op_type, inputs, results, op_version=13, name=name, **attributes)
    used = {name for node in wanted for name in node.input}
    for tensor in graph.initializer:
        if tensor.name in used:
            values = onnx.numpy_helper.to_array(tensor)
            container.add_initializer(
                renamed(tensor.name), tensor.data_type, list(tensor.dims), values.ravel().tolist()
            )


def needed(graph, outputs):
    """Returns the nodes that these outputs depend on, in order."""
    wanted, kept = set(outputs), []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            wanted |= set(node.input)
            kept.append(node)
    return kept[::-1]


_register()
