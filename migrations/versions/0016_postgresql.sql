CREATE TABLE node (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	node INTEGER NOT NULL, 
	seq BIGINT, 
	thread SMALLINT NOT NULL, 
	type TEXT NOT NULL, 
	site INTEGER, 
	proof TEXT NOT NULL, 
	module_call INTEGER, 
	born_in TEXT NOT NULL, 
	born_call INTEGER, 
	grad_order SMALLINT NOT NULL, 
	outputs JSONB NOT NULL, 
	variable INTEGER, 
	custom TEXT, 
	custom_site INTEGER, 
	first_seen INTEGER NOT NULL, 
	died INTEGER, 
	saved_bytes BIGINT NOT NULL, 
	freed_by INTEGER, 
	candidates JSONB, 
	CONSTRAINT pk_node PRIMARY KEY (part, run_id, attempt, node)
)
 PARTITION BY LIST (part);

CREATE INDEX node_site ON node (part, run_id, attempt, site);

CREATE INDEX node_first_seen ON node (part, run_id, attempt, first_seen);

COMMENT ON TABLE node IS 'A torch.autograd.graph.Node.';

COMMENT ON COLUMN node.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN node.run_id IS 'run.id.';

COMMENT ON COLUMN node.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN node.node IS 'Its number.';

COMMENT ON COLUMN node.seq IS 'Autograd sequence number; NULL: AccumulateGrad has none.';

COMMENT ON COLUMN node.thread IS 'n of record.threads.';

COMMENT ON COLUMN node.type IS 'AddmmBackward0, ...';

COMMENT ON COLUMN node.site IS 'The statement that made it; NULL: not known.';

COMMENT ON COLUMN node.proof IS 'How that is known: seen, range, source, unknown.';

COMMENT ON COLUMN node.module_call IS 'Innermost module call open then; NULL: none.';

COMMENT ON COLUMN node.born_in IS 'forward, backward or recompute.';

COMMENT ON COLUMN node.born_call IS 'The create_graph call that made it; NULL: none.';

COMMENT ON COLUMN node.grad_order IS '0: forward; else 1 + that of the nodes it derives.';

COMMENT ON COLUMN node.outputs IS 'Its forward outputs: shape, dtype, device.';

COMMENT ON COLUMN node.variable IS 'Tensor: the leaf of an AccumulateGrad; NULL: not one.';

COMMENT ON COLUMN node.custom IS 'The user''s autograd.Function; NULL: none.';

COMMENT ON COLUMN node.custom_site IS 'Where that is defined; NULL: not known.';

COMMENT ON COLUMN node.first_seen IS 'Moment of the walk that met it.';

COMMENT ON COLUMN node.died IS 'First moment at which it was gone; NULL: not known to be.';

COMMENT ON COLUMN node.saved_bytes IS 'Of what it saved for backward.';

COMMENT ON COLUMN node.freed_by IS 'Backward call that freed what it saved; NULL: none did.';

COMMENT ON COLUMN node.candidates IS 'Sites that may have made it, if not settled; NULL: of a version 1 record.';

CREATE TABLE edge (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	node INTEGER NOT NULL, 
	slot INTEGER NOT NULL, 
	to_node INTEGER, 
	input_nr INTEGER NOT NULL, 
	CONSTRAINT pk_edge PRIMARY KEY (part, run_id, attempt, node, slot)
)
 PARTITION BY LIST (part);

COMMENT ON TABLE edge IS 'node.next_functions[slot].';

COMMENT ON COLUMN edge.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN edge.run_id IS 'run.id.';

COMMENT ON COLUMN edge.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN edge.node IS 'From.';

COMMENT ON COLUMN edge.slot IS 'Place in its next_functions.';

COMMENT ON COLUMN edge.to_node IS 'To; NULL: no gradient is wanted there.';

COMMENT ON COLUMN edge.input_nr IS 'Which input of to_node.';

CREATE TABLE saved (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	node INTEGER NOT NULL, 
	n INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	tensor INTEGER, 
	storage INTEGER, 
	size_bytes BIGINT, 
	shape JSONB NOT NULL, 
	dtype TEXT NOT NULL, 
	version INTEGER, 
	proof TEXT NOT NULL, 
	held_by TEXT NOT NULL, 
	CONSTRAINT pk_saved PRIMARY KEY (part, run_id, attempt, node, n)
)
 PARTITION BY LIST (part);

CREATE INDEX saved_tensor ON saved (part, run_id, attempt, tensor);

COMMENT ON TABLE saved IS 'A tensor that a node holds for backward.';

COMMENT ON COLUMN saved.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN saved.run_id IS 'run.id.';

COMMENT ON COLUMN saved.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN saved.node IS 'Which node holds it.';

COMMENT ON COLUMN saved.n IS 'Counts what the node holds from 0.';

COMMENT ON COLUMN saved.name IS 'torch''s name for it: self, result, tensors[2].';

COMMENT ON COLUMN saved.tensor IS 'The tensor it is; NULL: not one we know.';

COMMENT ON COLUMN saved.storage IS 'Its memory; NULL: not known.';

COMMENT ON COLUMN saved.size_bytes IS 'Of that memory; NULL: a hook''s object is held instead.';

COMMENT ON COLUMN saved.shape IS 'Sizes.';

COMMENT ON COLUMN saved.dtype IS 'Its dtype; empty: not known.';

COMMENT ON COLUMN saved.version IS '_version at the birth of the node; NULL: not known.';

COMMENT ON COLUMN saved.proof IS 'How version is known: seen, range, source, unknown.';

COMMENT ON COLUMN saved.held_by IS 'plain, or the class of a saved-tensor hook''s object.';

CREATE TABLE backward_call (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	call INTEGER NOT NULL, 
	entry TEXT NOT NULL, 
	site INTEGER, 
	thread SMALLINT NOT NULL, 
	parent INTEGER, 
	roots JSONB NOT NULL, 
	inputs JSONB, 
	retain_graph BOOLEAN NOT NULL, 
	retain_graph_given BOOLEAN, 
	create_graph BOOLEAN NOT NULL, 
	accumulate_grad BOOLEAN NOT NULL, 
	allow_unused BOOLEAN NOT NULL, 
	returned JSONB, 
	nodes_met INTEGER NOT NULL, 
	nodes_run INTEGER NOT NULL, 
	nodes_freed INTEGER NOT NULL, 
	held_bytes BIGINT NOT NULL, 
	freed_bytes BIGINT NOT NULL, 
	duration_ns BIGINT NOT NULL, 
	own_ns BIGINT NOT NULL, 
	outcome TEXT NOT NULL, 
	exception INTEGER, 
	truncated BOOLEAN NOT NULL, 
	moment_before INTEGER NOT NULL, 
	moment_after INTEGER, 
	returned_grads JSONB, 
	CONSTRAINT pk_backward_call PRIMARY KEY (part, run_id, attempt, call), 
	CONSTRAINT ck_backward_call_outcome CHECK (outcome in ('running', 'finished', 'raised'))
)
 PARTITION BY LIST (part);

COMMENT ON TABLE backward_call IS 'One pass of the autograd engine.';

COMMENT ON COLUMN backward_call.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN backward_call.run_id IS 'run.id.';

COMMENT ON COLUMN backward_call.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN backward_call.call IS 'Its number, in order.';

COMMENT ON COLUMN backward_call.entry IS 'Tensor.backward, autograd.backward, autograd.grad, functional, checkpoint or unseen.';

COMMENT ON COLUMN backward_call.site IS 'Where; NULL: not known.';

COMMENT ON COLUMN backward_call.thread IS 'n of record.threads.';

COMMENT ON COLUMN backward_call.parent IS 'The call inside which it ran; NULL: none.';

COMMENT ON COLUMN backward_call.roots IS 'Where it began: tensor, name, shape, gradient_given.';

COMMENT ON COLUMN backward_call.inputs IS 'What it was asked for, likewise; NULL: all leaves.';

COMMENT ON COLUMN backward_call.retain_graph IS 'As it took effect.';

COMMENT ON COLUMN backward_call.retain_graph_given IS 'As written; NULL: defaulted.';

COMMENT ON COLUMN backward_call.create_graph IS 'As it took effect.';

COMMENT ON COLUMN backward_call.accumulate_grad IS 'It stores gradients; autograd.grad returns them instead.';

COMMENT ON COLUMN backward_call.allow_unused IS 'As it took effect.';

COMMENT ON COLUMN backward_call.returned IS 'Of autograd.grad: per input, whether a gradient came back; NULL: another entry.';

COMMENT ON COLUMN backward_call.nodes_met IS 'Walked before it.';

COMMENT ON COLUMN backward_call.nodes_run IS 'Executed.';

COMMENT ON COLUMN backward_call.nodes_freed IS 'Whose saved tensors it freed.';

COMMENT ON COLUMN backward_call.held_bytes IS 'Distinct saved memory before it.';

COMMENT ON COLUMN backward_call.freed_bytes IS 'Of the nodes that it freed.';

COMMENT ON COLUMN backward_call.duration_ns IS 'How long it took.';

COMMENT ON COLUMN backward_call.own_ns IS 'Of that, ours.';

COMMENT ON COLUMN backward_call.outcome IS 'finished; raised; running: the record ends inside it.';

COMMENT ON COLUMN backward_call.exception IS 'n in record.exceptions; NULL: it did not raise.';

COMMENT ON COLUMN backward_call.truncated IS 'The walk was cut by a cap.';

COMMENT ON COLUMN backward_call.moment_before IS 'Moment before-backward k.';

COMMENT ON COLUMN backward_call.moment_after IS 'Moment after-backward k; NULL: the record ends inside it.';

COMMENT ON COLUMN backward_call.returned_grads IS 'Of autograd.grad: statistics of what came back; NULL: not measured.';

CREATE TABLE node_pass (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	call INTEGER NOT NULL, 
	node INTEGER NOT NULL, 
	output_nr INTEGER NOT NULL, 
	position INTEGER, 
	freed BOOLEAN NOT NULL, 
	hole BOOLEAN NOT NULL, 
	norm REAL, 
	sum REAL, 
	min REAL, 
	max REAL, 
	nan BIGINT, 
	inf BIGINT, 
	zeros BIGINT, 
	counted BIGINT, 
	stat_kind TEXT, 
	CONSTRAINT pk_node_pass PRIMARY KEY (part, run_id, attempt, call, node, output_nr)
)
 PARTITION BY LIST (part);

COMMENT ON TABLE node_pass IS 'One node in one backward call.';

COMMENT ON COLUMN node_pass.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN node_pass.run_id IS 'run.id.';

COMMENT ON COLUMN node_pass.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN node_pass.call IS 'Which backward call.';

COMMENT ON COLUMN node_pass.node IS 'Which node.';

COMMENT ON COLUMN node_pass.output_nr IS 'Which forward output the gradient belongs to.';

COMMENT ON COLUMN node_pass.position IS 'Order of execution; NULL: reached by the walk, not run.';

COMMENT ON COLUMN node_pass.freed IS 'This call freed what it saved.';

COMMENT ON COLUMN node_pass.hole IS 'No gradient arrived.';

COMMENT ON COLUMN node_pass.norm IS 'L2 norm of the gradient that arrived; NULL: not measured or not defined.';

COMMENT ON COLUMN node_pass.sum IS 'Its sum; NULL likewise.';

COMMENT ON COLUMN node_pass.min IS 'Its least element; NULL likewise.';

COMMENT ON COLUMN node_pass.max IS 'Its greatest element; NULL likewise.';

COMMENT ON COLUMN node_pass.nan IS 'Elements that are NaN; NULL: not measured.';

COMMENT ON COLUMN node_pass.inf IS 'Elements that are infinite; NULL: not measured.';

COMMENT ON COLUMN node_pass.zeros IS 'Elements that are 0; NULL: not measured.';

COMMENT ON COLUMN node_pass.counted IS 'Elements looked at; NULL: not measured.';

COMMENT ON COLUMN node_pass.stat_kind IS 'exact or sampled; NULL: not measured.';

CREATE TABLE retention (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	n INTEGER NOT NULL, 
	root INTEGER NOT NULL, 
	name TEXT, 
	call INTEGER, 
	moment INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	freed_by INTEGER, 
	held_nodes INTEGER NOT NULL, 
	held_bytes BIGINT NOT NULL, 
	since_step INTEGER, 
	site INTEGER, 
	holders JSONB NOT NULL, 
	holder_search TEXT NOT NULL, 
	why TEXT, 
	CONSTRAINT pk_retention PRIMARY KEY (part, run_id, attempt, n), 
	CONSTRAINT ck_retention_state CHECK (state in ('held', 'freed', 'partly-freed', 'released'))
)
 PARTITION BY LIST (part);

CREATE INDEX retention_root ON retention (part, run_id, attempt, root);

COMMENT ON TABLE retention IS 'What a live root kept alive after a call or at the end.';

COMMENT ON COLUMN retention.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN retention.run_id IS 'run.id.';

COMMENT ON COLUMN retention.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN retention.n IS 'Its number, in order of root and moment.';

COMMENT ON COLUMN retention.root IS 'The tensor whose graph it is.';

COMMENT ON COLUMN retention.name IS 'Binding that the root had then; NULL: none.';

COMMENT ON COLUMN retention.call IS 'After which call; NULL: at the end.';

COMMENT ON COLUMN retention.moment IS 'When.';

COMMENT ON COLUMN retention.state IS 'held; freed; partly-freed; released: nothing was saved, or the nodes are gone.';

COMMENT ON COLUMN retention.freed_by IS 'Call that freed it; NULL: none did.';

COMMENT ON COLUMN retention.held_nodes IS 'Nodes that still held something.';

COMMENT ON COLUMN retention.held_bytes IS 'How much.';

COMMENT ON COLUMN retention.since_step IS 'Optimizer steps finished when it began to be held; NULL: not known.';

COMMENT ON COLUMN retention.site IS 'Where the root was made; NULL: not known.';

COMMENT ON COLUMN retention.holders IS 'Paths of Python names that keep it: losses[3], self.hidden.';

COMMENT ON COLUMN retention.holder_search IS 'done, not-asked or truncated.';

COMMENT ON COLUMN retention.why IS 'What is odd about it; NULL: nothing.';

CREATE TABLE mode (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	n INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	before TEXT NOT NULL, 
	after TEXT NOT NULL, 
	how TEXT NOT NULL, 
	switched_by TEXT, 
	thread SMALLINT NOT NULL, 
	site INTEGER, 
	moment INTEGER, 
	until INTEGER, 
	module INTEGER, 
	device TEXT, 
	CONSTRAINT pk_mode PRIMARY KEY (part, run_id, attempt, n), 
	CONSTRAINT ck_mode_kind CHECK (kind in ('grad', 'inference', 'autocast', 'training', 'anomaly', 'deterministic'))
)
 PARTITION BY LIST (part);

COMMENT ON TABLE mode IS 'A region of the run in which a mode of torch was another one.';

COMMENT ON COLUMN mode.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN mode.run_id IS 'run.id.';

COMMENT ON COLUMN mode.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN mode.n IS 'Its number, in order of time.';

COMMENT ON COLUMN mode.kind IS 'grad, inference, autocast, training, anomaly or deterministic.';

COMMENT ON COLUMN mode.before IS 'The mode before, as text.';

COMMENT ON COLUMN mode.after IS 'The mode since, as text.';

COMMENT ON COLUMN mode.how IS 'with, decorator, call or unknown.';

COMMENT ON COLUMN mode.switched_by IS 'torch''s function or class that did; NULL: not known.';

COMMENT ON COLUMN mode.thread IS 'n of record.threads.';

COMMENT ON COLUMN mode.site IS 'Where; NULL: outside the user''s files.';

COMMENT ON COLUMN mode.moment IS 'First moment under it; NULL: none.';

COMMENT ON COLUMN mode.until IS 'First moment after it; NULL: it held to the end, or has none.';

COMMENT ON COLUMN mode.module IS 'Of training: whose; NULL: another kind, or not recorded.';

COMMENT ON COLUMN mode.device IS 'Of autocast: the device type; NULL: another kind.';

CREATE TABLE watched_call (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	n INTEGER NOT NULL, 
	function TEXT NOT NULL, 
	moment INTEGER, 
	site INTEGER, 
	thread SMALLINT NOT NULL, 
	module_call INTEGER, 
	arguments JSONB NOT NULL, 
	inputs JSONB NOT NULL, 
	outputs JSONB NOT NULL, 
	raised BOOLEAN NOT NULL, 
	col INTEGER, 
	CONSTRAINT pk_watched_call PRIMARY KEY (part, run_id, attempt, n)
)
 PARTITION BY LIST (part);

CREATE INDEX watched_call_site ON watched_call (part, run_id, attempt, site);

CREATE INDEX watched_call_function ON watched_call (part, run_id, attempt, function);

COMMENT ON TABLE watched_call IS 'A call of a function that rules ask about: losses, softmax, detach, checkpoint, ...';

COMMENT ON COLUMN watched_call.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN watched_call.run_id IS 'run.id.';

COMMENT ON COLUMN watched_call.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN watched_call.n IS 'Its number, in order of time.';

COMMENT ON COLUMN watched_call.function IS 'torch''s full name: torch.nn.functional.cross_entropy.';

COMMENT ON COLUMN watched_call.moment IS 'First moment after it; NULL: the record ends inside it.';

COMMENT ON COLUMN watched_call.site IS 'Where; NULL: outside the user''s files.';

COMMENT ON COLUMN watched_call.thread IS 'n of record.threads.';

COMMENT ON COLUMN watched_call.module_call IS 'Innermost module call open then; NULL: none.';

COMMENT ON COLUMN watched_call.arguments IS 'Those that are no tensors, by parameter.';

COMMENT ON COLUMN watched_call.inputs IS 'Tensors handed in: name, tensor.';

COMMENT ON COLUMN watched_call.outputs IS 'Tensors that came back.';

COMMENT ON COLUMN watched_call.raised IS 'It ended with an exception.';

COMMENT ON COLUMN watched_call.col IS 'First column of the call, 1-based, in code points; NULL: not known.';

CREATE TABLE operation (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	operation INTEGER NOT NULL, 
	statement INTEGER NOT NULL, 
	line INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	end_line INTEGER NOT NULL, 
	end_col INTEGER NOT NULL, 
	function TEXT NOT NULL, 
	thread SMALLINT NOT NULL, 
	moment INTEGER, 
	operands JSONB NOT NULL, 
	"inner" JSONB NOT NULL, 
	complete BOOLEAN NOT NULL, 
	result TEXT NOT NULL, 
	tensor INTEGER, 
	is_value BOOLEAN NOT NULL, 
	requires_grad BOOLEAN, 
	shape JSONB, 
	dtype TEXT NOT NULL, 
	CONSTRAINT pk_operation PRIMARY KEY (part, run_id, attempt, operation), 
	CONSTRAINT ck_operation_result CHECK (result in ('tensor', 'tensors', 'number', 'array', 'other'))
)
 PARTITION BY LIST (part);

CREATE INDEX operation_statement ON operation (part, run_id, attempt, statement);

COMMENT ON TABLE operation IS 'An expression of the program: what went in, and what came out.';

COMMENT ON COLUMN operation.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN operation.run_id IS 'run.id.';

COMMENT ON COLUMN operation.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN operation.operation IS 'Its number, in the order in which they ended.';

COMMENT ON COLUMN operation.statement IS 'Site of the statement in which it stands.';

COMMENT ON COLUMN operation.line IS 'First line of the expression.';

COMMENT ON COLUMN operation.col IS 'First column, 1-based, in code points.';

COMMENT ON COLUMN operation.end_line IS 'Last line.';

COMMENT ON COLUMN operation.end_col IS 'Column after the last.';

COMMENT ON COLUMN operation.function IS 'As written: torch.cat, .detach, *, [], self.net.';

COMMENT ON COLUMN operation.thread IS 'n of record.threads.';

COMMENT ON COLUMN operation.moment IS 'The last moment before its end; NULL: none yet.';

COMMENT ON COLUMN operation.operands IS 'Tensors that went in.';

COMMENT ON COLUMN operation."inner" IS 'Operations whose results went in.';

COMMENT ON COLUMN operation.complete IS 'Everything that went in is in operands and inner.';

COMMENT ON COLUMN operation.result IS 'tensor, tensors, number, array or other.';

COMMENT ON COLUMN operation.tensor IS 'The tensor that came out; NULL: none, or one without a row.';

COMMENT ON COLUMN operation.is_value IS 'It is the value of its statement.';

COMMENT ON COLUMN operation.requires_grad IS 'Of the tensor that came out; NULL: no tensor.';

COMMENT ON COLUMN operation.shape IS 'Of the tensor that came out; NULL: no tensor, or none is defined.';

COMMENT ON COLUMN operation.dtype IS 'Of the tensor that came out; empty: no tensor.';

CREATE TABLE step (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	step INTEGER NOT NULL, 
	sampled BOOLEAN NOT NULL, 
	why TEXT NOT NULL, 
	first_moment INTEGER, 
	last_moment INTEGER, 
	site INTEGER, 
	loss DOUBLE PRECISION, 
	loss_tensor INTEGER, 
	grad_norm DOUBLE PRECISION, 
	parameters_without_grad INTEGER, 
	backward_calls INTEGER NOT NULL, 
	learning_rate DOUBLE PRECISION, 
	started_ns BIGINT NOT NULL, 
	duration_ns BIGINT NOT NULL, 
	own_ns BIGINT NOT NULL, 
	anomaly TEXT, 
	tensor INTEGER, 
	CONSTRAINT pk_step PRIMARY KEY (part, run_id, attempt, step)
)
 PARTITION BY LIST (part);

COMMENT ON TABLE step IS 'One training step: the time series of a run.';

COMMENT ON COLUMN step.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN step.run_id IS 'run.id.';

COMMENT ON COLUMN step.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN step.step IS 'Its number, from 0.';

COMMENT ON COLUMN step.sampled IS 'It was captured in full.';

COMMENT ON COLUMN step.why IS 'Why it was, or not: all, first, 1-2-5, every, anomaly, after-anomaly, loop-left, not-sampled or skipped.';

COMMENT ON COLUMN step.first_moment IS 'First moment in it; NULL: none.';

COMMENT ON COLUMN step.last_moment IS 'Last moment in it; NULL: none.';

COMMENT ON COLUMN step.site IS 'The statement that ended it; NULL: not known.';

COMMENT ON COLUMN step.loss IS 'Value of the first root of its last backward call; NULL: not known.';

COMMENT ON COLUMN step.loss_tensor IS 'That root; NULL: it has no row.';

COMMENT ON COLUMN step.grad_norm IS 'L2 norm over all gradients before the optimizer''s step; NULL: not measured.';

COMMENT ON COLUMN step.parameters_without_grad IS 'Tensors of the optimizer without a gradient; NULL: not counted.';

COMMENT ON COLUMN step.backward_calls IS 'How many ended in it.';

COMMENT ON COLUMN step.learning_rate IS 'Of the first group; NULL: no optimizer.';

COMMENT ON COLUMN step.started_ns IS 'Since the start of the record.';

COMMENT ON COLUMN step.duration_ns IS 'How long it took.';

COMMENT ON COLUMN step.own_ns IS 'Of that, ours.';

COMMENT ON COLUMN step.anomaly IS 'non-finite, exception, gradient-stopped, warning or none-read; NULL: nothing was seen.';

COMMENT ON COLUMN step.tensor IS 'The tensor with that anomaly; NULL: none in particular.';

CREATE TABLE histogram (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	tensor INTEGER NOT NULL, 
	moment INTEGER NOT NULL, 
	"of" TEXT NOT NULL, 
	low DOUBLE PRECISION NOT NULL, 
	high DOUBLE PRECISION NOT NULL, 
	counts JSONB NOT NULL, 
	below BIGINT NOT NULL, 
	above BIGINT NOT NULL, 
	nonfinite BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	scale TEXT NOT NULL, 
	zeros BIGINT NOT NULL, 
	CONSTRAINT pk_histogram PRIMARY KEY (part, run_id, attempt, tensor, moment, "of"), 
	CONSTRAINT ck_histogram_of CHECK (of in ('value', 'grad', 'arrived'))
)
 PARTITION BY LIST (part);

COMMENT ON TABLE histogram IS 'How the elements of a tensor, or of its gradient, are distributed.';

COMMENT ON COLUMN histogram.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN histogram.run_id IS 'run.id.';

COMMENT ON COLUMN histogram.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN histogram.tensor IS 'Whose elements.';

COMMENT ON COLUMN histogram.moment IS 'When.';

COMMENT ON COLUMN histogram."of" IS 'value, grad, or arrived: the gradient that reached it in a backward call.';

COMMENT ON COLUMN histogram.low IS 'Lower edge of the first bin.';

COMMENT ON COLUMN histogram.high IS 'Upper edge of the last bin.';

COMMENT ON COLUMN histogram.counts IS 'Elements per bin.';

COMMENT ON COLUMN histogram.below IS 'Finite elements under low.';

COMMENT ON COLUMN histogram.above IS 'Finite elements over high.';

COMMENT ON COLUMN histogram.nonfinite IS 'NaN and infinities.';

COMMENT ON COLUMN histogram.kind IS 'exact or sampled.';

COMMENT ON COLUMN histogram.scale IS 'linear: bins of one width; log2: of absolute values, each edge a multiple of the last.';

COMMENT ON COLUMN histogram.zeros IS 'On a log2 scale: elements that are 0, which lie in no bin.';

CREATE TABLE grad_input (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	call INTEGER NOT NULL, 
	node INTEGER NOT NULL, 
	slot INTEGER NOT NULL, 
	hole BOOLEAN NOT NULL, 
	norm REAL, 
	sum REAL, 
	min REAL, 
	max REAL, 
	nan BIGINT, 
	inf BIGINT, 
	zeros BIGINT, 
	counted BIGINT, 
	stat_kind TEXT, 
	CONSTRAINT pk_grad_input PRIMARY KEY (part, run_id, attempt, call, node, slot)
)
 PARTITION BY LIST (part);

COMMENT ON TABLE grad_input IS 'A gradient that a node sent on in one backward call.';

COMMENT ON COLUMN grad_input.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN grad_input.run_id IS 'run.id.';

COMMENT ON COLUMN grad_input.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN grad_input.call IS 'Which backward call.';

COMMENT ON COLUMN grad_input.node IS 'Which node.';

COMMENT ON COLUMN grad_input.slot IS 'Place in its next_functions: to which the gradient went.';

COMMENT ON COLUMN grad_input.hole IS 'It sent none there.';

COMMENT ON COLUMN grad_input.norm IS 'L2 norm of the gradient that was sent; NULL: not measured or not defined.';

COMMENT ON COLUMN grad_input.sum IS 'Its sum; NULL likewise.';

COMMENT ON COLUMN grad_input.min IS 'Its least element; NULL likewise.';

COMMENT ON COLUMN grad_input.max IS 'Its greatest element; NULL likewise.';

COMMENT ON COLUMN grad_input.nan IS 'Elements that are NaN; NULL: not measured.';

COMMENT ON COLUMN grad_input.inf IS 'Elements that are infinite; NULL: not measured.';

COMMENT ON COLUMN grad_input.zeros IS 'Elements that are 0; NULL: not measured.';

COMMENT ON COLUMN grad_input.counted IS 'Elements looked at; NULL: not measured.';

COMMENT ON COLUMN grad_input.stat_kind IS 'exact or sampled; NULL: not measured.';

CREATE TABLE origin (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	n INTEGER NOT NULL, 
	direction TEXT NOT NULL, 
	op TEXT NOT NULL, 
	what TEXT NOT NULL, 
	site INTEGER, 
	moment INTEGER, 
	call INTEGER, 
	tensor INTEGER, 
	inputs TEXT NOT NULL, 
	diverged BOOLEAN NOT NULL, 
	why TEXT, 
	CONSTRAINT pk_origin PRIMARY KEY (part, run_id, attempt, n), 
	CONSTRAINT ck_origin_direction CHECK (direction in ('forward', 'backward'))
)
 PARTITION BY LIST (part);

COMMENT ON TABLE origin IS 'Where the first NaN or infinity was made, by a second run.';

COMMENT ON COLUMN origin.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN origin.run_id IS 'run.id.';

COMMENT ON COLUMN origin.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN origin.n IS 'Its number.';

COMMENT ON COLUMN origin.direction IS 'forward, or backward: inside a backward call.';

COMMENT ON COLUMN origin.op IS 'The ATen op: aten.log.default.';

COMMENT ON COLUMN origin.what IS 'nan or inf.';

COMMENT ON COLUMN origin.site IS 'The statement that ran it; NULL: outside the user''s files.';

COMMENT ON COLUMN origin.moment IS 'First moment after it in the first run; NULL: none.';

COMMENT ON COLUMN origin.call IS 'Of backward: the call; NULL: forward, or not matched.';

COMMENT ON COLUMN origin.tensor IS 'The tensor of the first run that its result is; NULL: a value inside a library.';

COMMENT ON COLUMN origin.inputs IS 'Shapes, dtypes and ranges of its inputs.';

COMMENT ON COLUMN origin.diverged IS 'The second run did not follow the first one.';

COMMENT ON COLUMN origin.why IS 'What made it diverge, or why no op was found; NULL: nothing to add.';

CREATE TABLE ended_login (
	login TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	ended_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	CONSTRAINT pk_ended_login PRIMARY KEY (login)
);

CREATE INDEX ended_login_at ON ended_login (ended_at);

COMMENT ON TABLE ended_login IS 'A login whose cookie is valid by its signature, and opens nothing any more.';

COMMENT ON COLUMN ended_login.login IS 'The random name in its cookie.';

COMMENT ON COLUMN ended_login.actor IS 'Whose it was: user:...';

COMMENT ON COLUMN ended_login.ended_at IS 'When that person logged out.';

CREATE TABLE tenant (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	max_queued INTEGER NOT NULL, 
	max_running INTEGER NOT NULL, 
	weight INTEGER NOT NULL, 
	max_record_bytes BIGINT NOT NULL, 
	keep_days INTEGER NOT NULL, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	disabled_at TIMESTAMP(3) WITH TIME ZONE, 
	max_gpu_seconds BIGINT, 
	CONSTRAINT pk_tenant PRIMARY KEY (id), 
	CONSTRAINT uq_tenant_public_id UNIQUE (public_id)
);

COMMENT ON TABLE tenant IS 'A customer; tenants see nothing of each other. Embedded there is one, `default`.';

COMMENT ON COLUMN tenant.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN tenant.public_id IS 'What the API shows: tnt_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN tenant.name IS 'For people.';

COMMENT ON COLUMN tenant.max_queued IS 'Runs that may be queued at once; more are refused.';

COMMENT ON COLUMN tenant.max_running IS 'Runs that should run at once; a share, which simultaneous claims may pass by a few.';

COMMENT ON COLUMN tenant.weight IS 'Share in the claim: twice the weight, twice the runs when all wait.';

COMMENT ON COLUMN tenant.max_record_bytes IS 'Bytes that it may store, of records and all else.';

COMMENT ON COLUMN tenant.keep_days IS 'Days that a record is kept after its run has ended.';

COMMENT ON COLUMN tenant.created_at IS 'When it was made.';

COMMENT ON COLUMN tenant.disabled_at IS 'When it was shut; NULL: it is open.';

COMMENT ON COLUMN tenant.max_gpu_seconds IS 'Seconds of the queue gpu that runs accepted in one month (UTC) may use; NULL: as many as they like.';

CREATE TABLE record (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	schema_version INTEGER, 
	backprobe_version TEXT, 
	tier TEXT, 
	entry TEXT, 
	started_at TEXT, 
	duration_ns BIGINT, 
	own_ns BIGINT, 
	own_errors BIGINT, 
	own_error TEXT, 
	reached_end BOOLEAN NOT NULL, 
	ending TEXT, 
	exit_code BIGINT, 
	exception INTEGER, 
	tap TEXT, 
	environment JSONB, 
	threads JSONB NOT NULL, 
	sources JSONB NOT NULL, 
	hooks JSONB NOT NULL, 
	exceptions JSONB NOT NULL, 
	warnings JSONB NOT NULL, 
	streams JSONB NOT NULL, 
	truncations JSONB NOT NULL, 
	fallbacks JSONB NOT NULL, 
	deviations JSONB NOT NULL, 
	growth JSONB NOT NULL, 
	grad_reads JSONB NOT NULL, 
	tensor_notes JSONB NOT NULL, 
	grad_fns JSONB NOT NULL, 
	rules_not_run JSONB NOT NULL, 
	gradient_checks JSONB, 
	CONSTRAINT pk_record PRIMARY KEY (part, run_id, attempt)
)
 PARTITION BY LIST (part);

COMMENT ON TABLE record IS 'The head of a record, and what nobody filters by.';

COMMENT ON COLUMN record.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN record.run_id IS 'run.id.';

COMMENT ON COLUMN record.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN record.schema_version IS 'Version of the format it was first written in; NULL: not even its header came.';

COMMENT ON COLUMN record.backprobe_version IS 'Version that captured; NULL as schema_version.';

COMMENT ON COLUMN record.tier IS 'state, grad, full or deep; NULL as schema_version.';

COMMENT ON COLUMN record.entry IS 'run, watch, notebook or service; NULL as schema_version.';

COMMENT ON COLUMN record.started_at IS 'UTC, ISO 8601, as the child wrote it; NULL as schema_version.';

COMMENT ON COLUMN record.duration_ns IS 'From start to end; NULL: it did not reach its end.';

COMMENT ON COLUMN record.own_ns IS 'Of that, ours; NULL: it did not reach its end.';

COMMENT ON COLUMN record.own_errors IS 'Errors of ours that capture swallowed; NULL: it did not reach its end.';

COMMENT ON COLUMN record.own_error IS 'Text of the first of those; NULL: none.';

COMMENT ON COLUMN record.reached_end IS 'The end frame came: the record is whole as far as its caps allow.';

COMMENT ON COLUMN record.ending IS 'ended, raised or exited, in the program''s own words; NULL: it did not reach its end.';

COMMENT ON COLUMN record.exit_code IS 'What the interpreter would have exited with; NULL: it did not reach its end.';

COMMENT ON COLUMN record.exception IS 'n of the uncaught exception in exceptions; NULL: none.';

COMMENT ON COLUMN record.tap IS 'Which build of the taps ran: python or c; NULL as schema_version.';

COMMENT ON COLUMN record.environment IS 'Versions, devices, modes and variables; NULL as schema_version.';

COMMENT ON COLUMN record.threads IS 'Threads in which something was recorded.';

COMMENT ON COLUMN record.sources IS 'The user''s files as they were compiled.';

COMMENT ON COLUMN record.hooks IS 'Hooks that the program registered.';

COMMENT ON COLUMN record.exceptions IS 'Exceptions, caught ones too, with their frames.';

COMMENT ON COLUMN record.warnings IS 'Warnings as the program''s filters showed them.';

COMMENT ON COLUMN record.streams IS 'stdout and stderr: tail and total_bytes, from the pipe; recorded: the record''s own.';

COMMENT ON COLUMN record.truncations IS 'What was left out, and why.';

COMMENT ON COLUMN record.fallbacks IS 'Instruments that were installed in another way than planned.';

COMMENT ON COLUMN record.deviations IS 'What the program could notice of being recorded.';

COMMENT ON COLUMN record.growth IS 'Live nodes and held bytes after each backward call.';

COMMENT ON COLUMN record.grad_reads IS 'Where the program read .grad, and whether it was None.';

COMMENT ON COLUMN record.tensor_notes IS 'What is not recorded of a tensor, and why.';

COMMENT ON COLUMN record.grad_fns IS 'Names of nodes; snapshot_chunk.grad_fn counts them from 1.';

COMMENT ON COLUMN record.rules_not_run IS 'Rules that lacked a fact to judge it: code, name, why.';

COMMENT ON COLUMN record.gradient_checks IS 'Leaves whose gradient was compared with the derivative of the loss; NULL: stored by a version before it.';

CREATE TABLE site (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	site INTEGER NOT NULL, 
	file INTEGER NOT NULL, 
	path TEXT NOT NULL, 
	line INTEGER NOT NULL, 
	end_line INTEGER NOT NULL, 
	col INTEGER NOT NULL, 
	end_col INTEGER NOT NULL, 
	function TEXT NOT NULL, 
	loop_line INTEGER, 
	kind TEXT NOT NULL, 
	targets JSONB NOT NULL, 
	reads JSONB NOT NULL, 
	CONSTRAINT pk_site PRIMARY KEY (part, run_id, attempt, site)
)
 PARTITION BY LIST (part);

CREATE INDEX site_path_line ON site (part, run_id, attempt, path, line);

COMMENT ON TABLE site IS 'A statement or expression of the user''s files.';

COMMENT ON COLUMN site.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN site.run_id IS 'run.id.';

COMMENT ON COLUMN site.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN site.site IS 'Its number in the record.';

COMMENT ON COLUMN site.file IS 'Number of its file in record.sources.';

COMMENT ON COLUMN site.path IS 'Of that file, relative POSIX.';

COMMENT ON COLUMN site.line IS 'First line, 1-based.';

COMMENT ON COLUMN site.end_line IS 'Last line.';

COMMENT ON COLUMN site.col IS 'First column, 1-based, in code points.';

COMMENT ON COLUMN site.end_col IS 'Column after the last.';

COMMENT ON COLUMN site.function IS 'Qualified name of the enclosing function; <module> at top level.';

COMMENT ON COLUMN site.loop_line IS 'First line of the innermost enclosing loop in that function; NULL: none.';

COMMENT ON COLUMN site.kind IS 'assign, return, call, inplace, for, enter, grad-read, statement or module.';

COMMENT ON COLUMN site.targets IS 'Names it binds.';

COMMENT ON COLUMN site.reads IS 'Names it reads.';

CREATE TABLE moment (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	moment INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	k INTEGER NOT NULL, 
	site INTEGER, 
	thread SMALLINT NOT NULL, 
	module_call INTEGER, 
	step INTEGER NOT NULL, 
	time_ns BIGINT NOT NULL, 
	grad_mode BOOLEAN NOT NULL, 
	inference_mode BOOLEAN NOT NULL, 
	autocast TEXT, 
	CONSTRAINT pk_moment PRIMARY KEY (part, run_id, attempt, moment), 
	CONSTRAINT ck_moment_kind CHECK (kind in ('after-statement', 'before-backward', 'after-backward', 'optimizer-step', 'end'))
)
 PARTITION BY LIST (part);

CREATE INDEX moment_kind_k ON moment (part, run_id, attempt, kind, k);

COMMENT ON TABLE moment IS 'A point in the run at which state was taken.';

COMMENT ON COLUMN moment.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN moment.run_id IS 'run.id.';

COMMENT ON COLUMN moment.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN moment.moment IS 'Its number: the order in the run.';

COMMENT ON COLUMN moment.kind IS 'What had just happened, or was about to.';

COMMENT ON COLUMN moment.k IS 'Counts the moments of its kind that carry a number; else 0.';

COMMENT ON COLUMN moment.site IS 'Where; NULL: at no statement.';

COMMENT ON COLUMN moment.thread IS 'n of record.threads.';

COMMENT ON COLUMN moment.module_call IS 'Innermost module call open; NULL: none.';

COMMENT ON COLUMN moment.step IS 'Optimizer steps finished before it.';

COMMENT ON COLUMN moment.time_ns IS 'Since the start of the record.';

COMMENT ON COLUMN moment.grad_mode IS 'Autograd was on.';

COMMENT ON COLUMN moment.inference_mode IS 'Under inference_mode.';

COMMENT ON COLUMN moment.autocast IS 'dtype per device; NULL: off.';

CREATE TABLE module (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	module INTEGER NOT NULL, 
	class TEXT NOT NULL, 
	binding TEXT, 
	fqn TEXT, 
	site INTEGER, 
	user_code BOOLEAN NOT NULL, 
	training BOOLEAN NOT NULL, 
	parameters JSONB NOT NULL, 
	buffers JSONB NOT NULL, 
	CONSTRAINT pk_module PRIMARY KEY (part, run_id, attempt, module)
)
 PARTITION BY LIST (part);

COMMENT ON TABLE module IS 'An nn.Module of the program.';

COMMENT ON COLUMN module.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN module.run_id IS 'run.id.';

COMMENT ON COLUMN module.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN module.module IS 'Its number.';

COMMENT ON COLUMN module.class IS 'Class name.';

COMMENT ON COLUMN module.binding IS 'Name it was bound to, for a root module; NULL: none.';

COMMENT ON COLUMN module.fqn IS 'Path below that; NULL: a root.';

COMMENT ON COLUMN module.site IS 'Where it was first seen; NULL: not known.';

COMMENT ON COLUMN module.user_code IS 'Its class is defined in the user''s files.';

COMMENT ON COLUMN module.training IS 'In training mode when first seen.';

COMMENT ON COLUMN module.parameters IS 'Its own: name, tensor, requires_grad.';

COMMENT ON COLUMN module.buffers IS 'Its own, likewise.';

CREATE TABLE module_call (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	module_call INTEGER NOT NULL, 
	module INTEGER NOT NULL, 
	k INTEGER NOT NULL, 
	parent INTEGER, 
	site INTEGER, 
	chain TEXT NOT NULL, 
	lo BIGINT NOT NULL, 
	hi BIGINT NOT NULL, 
	thread SMALLINT NOT NULL, 
	training BOOLEAN NOT NULL, 
	grad_mode BOOLEAN NOT NULL, 
	recompute BOOLEAN NOT NULL, 
	CONSTRAINT pk_module_call PRIMARY KEY (part, run_id, attempt, module_call)
)
 PARTITION BY LIST (part);

CREATE INDEX module_call_chain ON module_call (part, run_id, attempt, chain);

COMMENT ON TABLE module_call IS 'The k-th call of a module.';

COMMENT ON COLUMN module_call.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN module_call.run_id IS 'run.id.';

COMMENT ON COLUMN module_call.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN module_call.module_call IS 'Its number.';

COMMENT ON COLUMN module_call.module IS 'Whose call.';

COMMENT ON COLUMN module_call.k IS 'Counts the module''s calls from 0.';

COMMENT ON COLUMN module_call.parent IS 'The call in which it was made; NULL: none.';

COMMENT ON COLUMN module_call.site IS 'Where it was called; NULL: not known.';

COMMENT ON COLUMN module_call.chain IS 'Calls it was made in, outermost first: h.3.attn#0.';

COMMENT ON COLUMN module_call.lo IS 'Autograd sequence number at enter.';

COMMENT ON COLUMN module_call.hi IS 'At leave: its nodes are those in [lo, hi).';

COMMENT ON COLUMN module_call.thread IS 'n of record.threads.';

COMMENT ON COLUMN module_call.training IS 'In training mode.';

COMMENT ON COLUMN module_call.grad_mode IS 'Autograd was on.';

COMMENT ON COLUMN module_call.recompute IS 'A checkpoint''s second forward.';

CREATE TABLE run_event (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	seq INTEGER NOT NULL, 
	at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	kind TEXT NOT NULL, 
	attempt SMALLINT, 
	payload JSONB NOT NULL, 
	CONSTRAINT pk_run_event PRIMARY KEY (part, run_id, seq)
);

COMMENT ON TABLE run_event IS 'What happened to a run, in order.';

COMMENT ON COLUMN run_event.part IS 'As in run.';

COMMENT ON COLUMN run_event.run_id IS 'Which run; no foreign key, because months are dropped whole.';

COMMENT ON COLUMN run_event.seq IS 'Counts the run''s events from 1; the id in event streams.';

COMMENT ON COLUMN run_event.at IS 'When.';

COMMENT ON COLUMN run_event.kind IS 'queued, claimed, cancel-requested, requeued, status.';

COMMENT ON COLUMN run_event.attempt IS 'During which attempt; NULL: none.';

COMMENT ON COLUMN run_event.payload IS 'A few facts, at most 4 KiB, never content of a record.';

CREATE TABLE worker_node (
	id TEXT NOT NULL, 
	queues JSONB NOT NULL, 
	levels JSONB NOT NULL, 
	devices JSONB NOT NULL, 
	versions JSONB NOT NULL, 
	slots SMALLINT NOT NULL, 
	busy SMALLINT NOT NULL, 
	started_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	heartbeat_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	draining BOOLEAN NOT NULL, 
	probe JSONB NOT NULL, 
	CONSTRAINT pk_worker_node PRIMARY KEY (id)
);

COMMENT ON TABLE worker_node IS 'A worker process, as long as it beats.';

COMMENT ON COLUMN worker_node.id IS 'host:pid:nonce of a worker process.';

COMMENT ON COLUMN worker_node.queues IS 'Queues it takes runs from.';

COMMENT ON COLUMN worker_node.levels IS 'Isolation levels that it really offers.';

COMMENT ON COLUMN worker_node.devices IS 'Device classes that it offers.';

COMMENT ON COLUMN worker_node.versions IS 'Of backprobe, torch, Python.';

COMMENT ON COLUMN worker_node.slots IS 'Runs it can hold at once.';

COMMENT ON COLUMN worker_node.busy IS 'Runs it holds.';

COMMENT ON COLUMN worker_node.started_at IS 'Its first beat.';

COMMENT ON COLUMN worker_node.heartbeat_at IS 'Its last beat: its health, not that a process is there.';

COMMENT ON COLUMN worker_node.draining IS 'It takes no more runs.';

COMMENT ON COLUMN worker_node.probe IS 'What the sandbox''s canary proved.';

CREATE TABLE snapshot_chunk (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	tensor INTEGER NOT NULL, 
	first_moment INTEGER NOT NULL, 
	last_moment INTEGER NOT NULL, 
	n SMALLINT NOT NULL, 
	moment_step SMALLINT NOT NULL, 
	flags_and SMALLINT NOT NULL, 
	flags_or SMALLINT NOT NULL, 
	grad_norm_min REAL, 
	grad_norm_max REAL, 
	nan_total BIGINT NOT NULL, 
	inf_total BIGINT NOT NULL, 
	version_step SMALLINT NOT NULL, 
	moments BYTEA, 
	flags BYTEA, 
	grad_fn BYTEA, 
	why BYTEA, 
	grad_dtype BYTEA, 
	why_site BYTEA, 
	why_call BYTEA, 
	version BYTEA, 
	grad_id BYTEA, 
	grad_version BYTEA, 
	value_norm BYTEA, 
	value_sum BYTEA, 
	value_min BYTEA, 
	value_max BYTEA, 
	grad_norm BYTEA, 
	grad_sum BYTEA, 
	grad_min BYTEA, 
	grad_max BYTEA, 
	value_nan BYTEA, 
	value_inf BYTEA, 
	value_zeros BYTEA, 
	value_counted BYTEA, 
	grad_nan BYTEA, 
	grad_inf BYTEA, 
	grad_zeros BYTEA, 
	grad_counted BYTEA, 
	held_bytes BYTEA, 
	overview BYTEA, 
	CONSTRAINT pk_snapshot_chunk PRIMARY KEY (part, run_id, attempt, tensor, first_moment)
)
 PARTITION BY LIST (part);

CREATE INDEX snapshot_chunk_nonfinite ON snapshot_chunk (part, run_id, attempt, tensor) WHERE nan_total + inf_total > 0;

CREATE INDEX snapshot_chunk_grad_norm ON snapshot_chunk (part, run_id, attempt, grad_norm_max DESC);

COMMENT ON TABLE snapshot_chunk IS 'Up to 480 snapshots of one tensor; the history behind the last state in tensor.';

COMMENT ON COLUMN snapshot_chunk.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN snapshot_chunk.run_id IS 'run.id.';

COMMENT ON COLUMN snapshot_chunk.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN snapshot_chunk.tensor IS 'Whose snapshots.';

COMMENT ON COLUMN snapshot_chunk.first_moment IS 'Moment of the first.';

COMMENT ON COLUMN snapshot_chunk.last_moment IS 'Moment of the last.';

COMMENT ON COLUMN snapshot_chunk.n IS 'How many, 1 to 480.';

COMMENT ON COLUMN snapshot_chunk.moment_step IS 'Distance of their moments; 0: see moments.';

COMMENT ON COLUMN snapshot_chunk.flags_and IS 'Bits that all flags have.';

COMMENT ON COLUMN snapshot_chunk.flags_or IS 'Bits that any flags have.';

COMMENT ON COLUMN snapshot_chunk.grad_norm_min IS 'Least grad_norm that is a number; NULL: none is.';

COMMENT ON COLUMN snapshot_chunk.grad_norm_max IS 'Greatest grad_norm that is a number; NULL: none is. NaN would head every top list.';

COMMENT ON COLUMN snapshot_chunk.nan_total IS 'NaN in values and gradients, summed.';

COMMENT ON COLUMN snapshot_chunk.inf_total IS 'Infinities in values and gradients, summed.';

COMMENT ON COLUMN snapshot_chunk.version_step IS 'version[i] = version[0] + version_step x i; 0: version is constant or listed.';

COMMENT ON COLUMN snapshot_chunk.moments IS 'i4; moments of the snapshots. NULL: they are first_moment + moment_step x i.';

COMMENT ON COLUMN snapshot_chunk.flags IS 'i2; bits 1 is_leaf, 2 requires_grad, 4 retains_grad, 8 has grad_fn, 16 grad none, 32 grad not-read, 64 value sampled, 128 grad_fn not read, 256 value measured, 512 gradient measured, 1024 gradient sampled. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.grad_fn IS 'i4; name of its node, counted from 1 in record.grad_fns; 0: none. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.why IS 'i2; code of the verdict why there is no gradient; always absent so far. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.grad_dtype IS 'i2; code of the gradient''s dtype; always absent so far. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.why_site IS 'i4; statement that decided why; always absent so far. Absent: -1.';

COMMENT ON COLUMN snapshot_chunk.why_call IS 'i4; backward call that decided why; always absent so far. Absent: -1.';

COMMENT ON COLUMN snapshot_chunk.version IS 'i4; _version, -1: not known; with version_step only the first. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.grad_id IS 'i4; identity of the tensor in .grad, -1: none. Absent: -1.';

COMMENT ON COLUMN snapshot_chunk.grad_version IS 'i4; _version of the tensor in .grad, -1: none. Absent: -1.';

COMMENT ON COLUMN snapshot_chunk.value_norm IS 'f4; L2 norm of the value. Absent: NaN 0x7fc00001, not defined.';

COMMENT ON COLUMN snapshot_chunk.value_sum IS 'f4; sum of the value. Absent: NaN 0x7fc00001, not defined.';

COMMENT ON COLUMN snapshot_chunk.value_min IS 'f4; least element of the value. Absent: NaN 0x7fc00001, not defined.';

COMMENT ON COLUMN snapshot_chunk.value_max IS 'f4; greatest element of the value. Absent: NaN 0x7fc00001, not defined.';

COMMENT ON COLUMN snapshot_chunk.grad_norm IS 'f4; L2 norm of the gradient. Absent: NaN 0x7fc00001, not defined.';

COMMENT ON COLUMN snapshot_chunk.grad_sum IS 'f4; sum of the gradient. Absent: NaN 0x7fc00001, not defined.';

COMMENT ON COLUMN snapshot_chunk.grad_min IS 'f4; least element of the gradient. Absent: NaN 0x7fc00001, not defined.';

COMMENT ON COLUMN snapshot_chunk.grad_max IS 'f4; greatest element of the gradient. Absent: NaN 0x7fc00001, not defined.';

COMMENT ON COLUMN snapshot_chunk.value_nan IS 'i8; NaN in the value. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.value_inf IS 'i8; infinities in the value. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.value_zeros IS 'i8; zeros in the value. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.value_counted IS 'i8; elements looked at in the value. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.grad_nan IS 'i8; NaN in the gradient. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.grad_inf IS 'i8; infinities in the gradient. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.grad_zeros IS 'i8; zeros in the gradient. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.grad_counted IS 'i8; elements looked at in the gradient. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.held_bytes IS 'i8; bytes that the graph behind it held; always absent so far. Absent: 0.';

COMMENT ON COLUMN snapshot_chunk.overview IS 'Highest grad_norm of each 16 snapshots, f4. NULL: no gradient norm in the chunk, or it is one such block.';

ALTER TABLE snapshot_chunk ALTER COLUMN moments SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN flags SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_fn SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN why SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_dtype SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN why_site SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN why_call SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN version SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_id SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_version SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN value_norm SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN value_sum SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN value_min SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN value_max SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_norm SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_sum SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_min SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_max SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN value_nan SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN value_inf SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN value_zeros SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN value_counted SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_nan SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_inf SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_zeros SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN grad_counted SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN held_bytes SET STORAGE EXTERNAL;

ALTER TABLE snapshot_chunk ALTER COLUMN overview SET STORAGE EXTERNAL;

CREATE TABLE stored_bytes (
	id BIGSERIAL NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	bytes BIGINT NOT NULL, 
	CONSTRAINT pk_stored_bytes PRIMARY KEY (id), 
	CONSTRAINT ck_stored_bytes_kind CHECK (kind in ('programs', 'runs', 'records', 'findings', 'audits', 'webhooks', 'projects'))
);

CREATE INDEX stored_bytes_of_tenant ON stored_bytes (tenant_id, kind, bytes);

COMMENT ON TABLE stored_bytes IS 'What each tenant stores, change by change: the sum of its rows is what it has.';

COMMENT ON COLUMN stored_bytes.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN stored_bytes.tenant_id IS 'Whose; no foreign key, for its check would lock the tenant''s row in every write.';

COMMENT ON COLUMN stored_bytes.kind IS 'Of what: programs, runs, records, findings, audits, webhooks or projects.';

COMMENT ON COLUMN stored_bytes.bytes IS 'By how many it grew; less than 0: it shrank.';

CREATE TABLE tensor (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	tensor INTEGER NOT NULL, 
	name TEXT, 
	fqn TEXT, 
	role TEXT, 
	shape JSONB, 
	stride JSONB, 
	storage_offset BIGINT, 
	dtype TEXT NOT NULL, 
	layout TEXT NOT NULL, 
	device TEXT NOT NULL, 
	class TEXT NOT NULL, 
	special TEXT, 
	numel BIGINT NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	storage INTEGER, 
	storage_bytes BIGINT, 
	view_of INTEGER, 
	created_by TEXT NOT NULL, 
	created_how TEXT NOT NULL, 
	proof TEXT NOT NULL, 
	site INTEGER, 
	line INTEGER, 
	moment INTEGER NOT NULL, 
	node INTEGER, 
	output_nr INTEGER, 
	node_proof TEXT, 
	died INTEGER, 
	last_moment INTEGER, 
	is_leaf BOOLEAN, 
	requires_grad BOOLEAN, 
	retains_grad BOOLEAN, 
	grad_fn TEXT, 
	version INTEGER, 
	grad TEXT, 
	why_none TEXT, 
	why_text TEXT, 
	why_site INTEGER, 
	why_line INTEGER, 
	why_call INTEGER, 
	grad_norm REAL, 
	value_norm REAL, 
	nonfinite BIGINT NOT NULL, 
	grad_ever BOOLEAN NOT NULL, 
	held_bytes BIGINT NOT NULL, 
	CONSTRAINT pk_tensor PRIMARY KEY (part, run_id, attempt, tensor), 
	CONSTRAINT ck_tensor_grad CHECK (grad in ('none', 'present', 'not-read'))
)
 PARTITION BY LIST (part);

CREATE INDEX tensor_grad_norm ON tensor (part, run_id, attempt, grad_norm DESC);

CREATE INDEX tensor_without_grad ON tensor (part, run_id, attempt, tensor) WHERE requires_grad and grad <> 'present';

CREATE INDEX tensor_line_tensor ON tensor (part, run_id, attempt, line, tensor);

CREATE INDEX tensor_name ON tensor (part, run_id, attempt, name);

COMMENT ON TABLE tensor IS 'One tensor of a run, and its last state: what a person asks first.';

COMMENT ON COLUMN tensor.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN tensor.run_id IS 'run.id.';

COMMENT ON COLUMN tensor.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN tensor.tensor IS 'Its number: the identity through the run.';

COMMENT ON COLUMN tensor.name IS 'The last name it was bound to; NULL: it never had one.';

COMMENT ON COLUMN tensor.fqn IS 'state_dict key with the module''s name in front; NULL: none.';

COMMENT ON COLUMN tensor.role IS 'parameter, buffer or optimizer-only; NULL: none of them.';

COMMENT ON COLUMN tensor.shape IS 'Sizes; NULL: strided nested, it has none.';

COMMENT ON COLUMN tensor.stride IS 'In elements; NULL: torch defines none.';

COMMENT ON COLUMN tensor.storage_offset IS 'In elements; NULL: torch defines none.';

COMMENT ON COLUMN tensor.dtype IS 'torch.float32, ...';

COMMENT ON COLUMN tensor.layout IS 'torch.strided, ...';

COMMENT ON COLUMN tensor.device IS 'cpu, cuda:0, ...';

COMMENT ON COLUMN tensor.class IS 'Tensor, Parameter or the subclass.';

COMMENT ON COLUMN tensor.special IS 'Why statistics or elements may be missing: sparse-coo, fake, ...; NULL: nothing special.';

COMMENT ON COLUMN tensor.numel IS 'Elements.';

COMMENT ON COLUMN tensor.size_bytes IS 'numel x element size.';

COMMENT ON COLUMN tensor.storage IS 'Tensors with the same number share memory; NULL: sparse, mkldnn.';

COMMENT ON COLUMN tensor.storage_bytes IS 'Of that memory; NULL as storage.';

COMMENT ON COLUMN tensor.view_of IS 'The tensor that is its _base; NULL: no view.';

COMMENT ON COLUMN tensor.created_by IS 'op, user, library or unknown.';

COMMENT ON COLUMN tensor.created_how IS 'The node''s name, or the call in the statement.';

COMMENT ON COLUMN tensor.proof IS 'How that is known: seen, range, source, unknown.';

COMMENT ON COLUMN tensor.site IS 'Where it was first seen; NULL: at no statement.';

COMMENT ON COLUMN tensor.line IS 'First line of that site; NULL as site.';

COMMENT ON COLUMN tensor.moment IS 'When it was first seen.';

COMMENT ON COLUMN tensor.node IS 'The node whose output it is; NULL: none, or not walked.';

COMMENT ON COLUMN tensor.output_nr IS 'Which output; NULL as node.';

COMMENT ON COLUMN tensor.node_proof IS 'How node is known; NULL as node.';

COMMENT ON COLUMN tensor.died IS 'First moment at which it was gone; NULL: alive at the end, or not known.';

COMMENT ON COLUMN tensor.last_moment IS 'Of its last snapshot, whose state follows; NULL: it has none.';

COMMENT ON COLUMN tensor.is_leaf IS 'Last state; NULL: no snapshot.';

COMMENT ON COLUMN tensor.requires_grad IS 'Last state; NULL: no snapshot.';

COMMENT ON COLUMN tensor.retains_grad IS 'Last state; NULL: no snapshot.';

COMMENT ON COLUMN tensor.grad_fn IS 'Last state: name of its node; NULL: none, or not read.';

COMMENT ON COLUMN tensor.version IS 'Last state: _version; NULL: not known.';

COMMENT ON COLUMN tensor.grad IS 'Last state: none, present, or not-read (torch would warn); NULL: no snapshot.';

COMMENT ON COLUMN tensor.why_none IS 'Verdict: why it has no gradient; NULL: it has one, or nobody judged.';

COMMENT ON COLUMN tensor.why_text IS 'The verdict in a sentence; NULL as why_none.';

COMMENT ON COLUMN tensor.why_site IS 'The statement that decided it; NULL: none did.';

COMMENT ON COLUMN tensor.why_line IS 'First line of that statement; NULL: none did.';

COMMENT ON COLUMN tensor.why_call IS 'The backward call that decided it; NULL: none did.';

COMMENT ON COLUMN tensor.grad_norm IS 'Last one measured; NULL: never.';

COMMENT ON COLUMN tensor.value_norm IS 'Last one measured; NULL: never.';

COMMENT ON COLUMN tensor.nonfinite IS 'Most NaN and infinities seen at once in it and its gradient.';

COMMENT ON COLUMN tensor.grad_ever IS 'A snapshot saw a gradient.';

COMMENT ON COLUMN tensor.held_bytes IS 'What the graph behind it held for backward when last looked at.';

CREATE TABLE binding (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	binding INTEGER NOT NULL, 
	tensor INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	site INTEGER NOT NULL, 
	moment INTEGER NOT NULL, 
	function TEXT NOT NULL, 
	version INTEGER, 
	replaces INTEGER, 
	parents JSONB NOT NULL, 
	CONSTRAINT pk_binding PRIMARY KEY (part, run_id, attempt, binding)
)
 PARTITION BY LIST (part);

CREATE INDEX binding_name ON binding (part, run_id, attempt, name);

CREATE INDEX binding_tensor ON binding (part, run_id, attempt, tensor);

COMMENT ON TABLE binding IS 'A name that came to hold a tensor.';

COMMENT ON COLUMN binding.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN binding.run_id IS 'run.id.';

COMMENT ON COLUMN binding.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN binding.binding IS 'Its number, in order of time.';

COMMENT ON COLUMN binding.tensor IS 'What the name came to hold.';

COMMENT ON COLUMN binding.name IS 'As written: x, self.h, losses[-1].';

COMMENT ON COLUMN binding.site IS 'Where.';

COMMENT ON COLUMN binding.moment IS 'When.';

COMMENT ON COLUMN binding.function IS 'In which function; <module> at top level.';

COMMENT ON COLUMN binding.version IS '_version then; NULL: inference mode.';

COMMENT ON COLUMN binding.replaces IS 'Tensor that the name held before in this function; NULL: none.';

COMMENT ON COLUMN binding.parents IS 'Tensors it was computed from.';

CREATE TABLE small_value (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	tensor INTEGER NOT NULL, 
	moment INTEGER NOT NULL, 
	"of" TEXT NOT NULL, 
	dtype TEXT NOT NULL, 
	shape JSONB NOT NULL, 
	elements BYTEA NOT NULL, 
	CONSTRAINT pk_small_value PRIMARY KEY (part, run_id, attempt, tensor, moment, "of"), 
	CONSTRAINT ck_small_value_of CHECK (of in ('value', 'grad', 'arrived'))
)
 PARTITION BY LIST (part);

COMMENT ON TABLE small_value IS 'The elements of a tensor of at most 64, or of its gradient.';

COMMENT ON COLUMN small_value.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN small_value.run_id IS 'run.id.';

COMMENT ON COLUMN small_value.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN small_value.tensor IS 'Whose elements.';

COMMENT ON COLUMN small_value.moment IS 'When.';

COMMENT ON COLUMN small_value."of" IS 'value, grad, or arrived: the gradient that reached it in a backward call.';

COMMENT ON COLUMN small_value.dtype IS 'Of the elements, without torch. in front.';

COMMENT ON COLUMN small_value.shape IS 'Of the elements.';

COMMENT ON COLUMN small_value.elements IS 'At most 64, little-endian, row-major.';

CREATE TABLE leaf_grad (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	n INTEGER NOT NULL, 
	tensor INTEGER NOT NULL, 
	call INTEGER, 
	moment INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	grad_before INTEGER, 
	grad_after INTEGER, 
	version_before INTEGER, 
	version_after INTEGER, 
	site INTEGER, 
	CONSTRAINT pk_leaf_grad PRIMARY KEY (part, run_id, attempt, n)
)
 PARTITION BY LIST (part);

CREATE INDEX leaf_grad_tensor_moment ON leaf_grad (part, run_id, attempt, tensor, moment);

COMMENT ON TABLE leaf_grad IS 'A change of one leaf''s .grad.';

COMMENT ON COLUMN leaf_grad.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN leaf_grad.run_id IS 'run.id.';

COMMENT ON COLUMN leaf_grad.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN leaf_grad.n IS 'Its number, in order of time.';

COMMENT ON COLUMN leaf_grad.tensor IS 'Whose .grad.';

COMMENT ON COLUMN leaf_grad.call IS 'In which backward call; NULL: outside any.';

COMMENT ON COLUMN leaf_grad.moment IS 'When.';

COMMENT ON COLUMN leaf_grad.kind IS 'populate, accumulate, accumulate-new-tensor, modified-in-place, assigned, set-none, untouched.';

COMMENT ON COLUMN leaf_grad.grad_before IS 'Identity of .grad before; NULL: None.';

COMMENT ON COLUMN leaf_grad.grad_after IS 'Identity of .grad after; NULL: None.';

COMMENT ON COLUMN leaf_grad.version_before IS '_version of .grad before; NULL: None.';

COMMENT ON COLUMN leaf_grad.version_after IS '_version of .grad after; NULL: None.';

COMMENT ON COLUMN leaf_grad.site IS 'Where; NULL: at no statement.';

CREATE TABLE inplace_event (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	n INTEGER NOT NULL, 
	tensor INTEGER NOT NULL, 
	site INTEGER, 
	moment INTEGER NOT NULL, 
	version_before INTEGER NOT NULL, 
	version_after INTEGER NOT NULL, 
	done_by TEXT NOT NULL, 
	optimizer INTEGER, 
	CONSTRAINT pk_inplace_event PRIMARY KEY (part, run_id, attempt, n), 
	CONSTRAINT ck_inplace_event_done_by CHECK (done_by in ('statement', 'optimizer', 'backward', 'unknown'))
)
 PARTITION BY LIST (part);

CREATE INDEX inplace_event_tensor ON inplace_event (part, run_id, attempt, tensor);

COMMENT ON TABLE inplace_event IS 'A change in place: a tensor''s _version rose.';

COMMENT ON COLUMN inplace_event.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN inplace_event.run_id IS 'run.id.';

COMMENT ON COLUMN inplace_event.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN inplace_event.n IS 'Its number, in order of time.';

COMMENT ON COLUMN inplace_event.tensor IS 'Which tensor.';

COMMENT ON COLUMN inplace_event.site IS 'Which statement changed it; NULL: not known.';

COMMENT ON COLUMN inplace_event.moment IS 'When.';

COMMENT ON COLUMN inplace_event.version_before IS '_version before.';

COMMENT ON COLUMN inplace_event.version_after IS '_version after.';

COMMENT ON COLUMN inplace_event.done_by IS 'statement, optimizer, backward or unknown.';

COMMENT ON COLUMN inplace_event.optimizer IS 'Which optimizer; NULL: none.';

CREATE TABLE optimizer (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	optimizer INTEGER NOT NULL, 
	class TEXT NOT NULL, 
	binding TEXT, 
	site INTEGER, 
	moment INTEGER NOT NULL, 
	groups JSONB NOT NULL, 
	tensors JSONB NOT NULL, 
	CONSTRAINT pk_optimizer PRIMARY KEY (part, run_id, attempt, optimizer)
)
 PARTITION BY LIST (part);

COMMENT ON TABLE optimizer IS 'A torch.optim.Optimizer.';

COMMENT ON COLUMN optimizer.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN optimizer.run_id IS 'run.id.';

COMMENT ON COLUMN optimizer.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN optimizer.optimizer IS 'Its number.';

COMMENT ON COLUMN optimizer.class IS 'Class name.';

COMMENT ON COLUMN optimizer.binding IS 'Name it was bound to; NULL: none.';

COMMENT ON COLUMN optimizer.site IS 'Where it was made; NULL: not known.';

COMMENT ON COLUMN optimizer.moment IS 'When it was first seen.';

COMMENT ON COLUMN optimizer.groups IS 'Its parameter groups: learning_rate.';

COMMENT ON COLUMN optimizer.tensors IS 'The tensors in them: tensor, group, stale, non_leaf, foreign, duplicated.';

CREATE TABLE optimizer_event (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	n INTEGER NOT NULL, 
	optimizer INTEGER, 
	kind TEXT NOT NULL, 
	site INTEGER, 
	moment INTEGER NOT NULL, 
	set_to_none BOOLEAN, 
	with_grad INTEGER NOT NULL, 
	without_grad INTEGER NOT NULL, 
	changed INTEGER NOT NULL, 
	scale DOUBLE PRECISION, 
	scale_before DOUBLE PRECISION, 
	found_inf BOOLEAN, 
	skipped BOOLEAN, 
	class TEXT, 
	clip_limit DOUBLE PRECISION, 
	norm_type DOUBLE PRECISION, 
	total_norm DOUBLE PRECISION, 
	learning_rates JSONB, 
	CONSTRAINT pk_optimizer_event PRIMARY KEY (part, run_id, attempt, n), 
	CONSTRAINT ck_optimizer_event_kind CHECK (kind in ('step', 'zero_grad', 'clip_grad_norm', 'clip_grad_value', 'scheduler_step', 'scaler_scale', 'scaler_unscale', 'scaler_step', 'scaler_update', 'add_param_group', 'load_state_dict'))
)
 PARTITION BY LIST (part);

COMMENT ON TABLE optimizer_event IS 'A step of an optimizer, or what belongs to one: zero_grad, clipping, scheduler, gradient scaler.';

COMMENT ON COLUMN optimizer_event.part IS 'Months since 2020-01 of the time in the run''s id.';

COMMENT ON COLUMN optimizer_event.run_id IS 'run.id.';

COMMENT ON COLUMN optimizer_event.attempt IS 'The attempt whose rows these are; readers see run.result_attempt''s.';

COMMENT ON COLUMN optimizer_event.n IS 'Its number, in order of time.';

COMMENT ON COLUMN optimizer_event.optimizer IS 'Whose; NULL: clipping and scaling that name none.';

COMMENT ON COLUMN optimizer_event.kind IS 'step, zero_grad, clip_grad_norm, scheduler_step, scaler_update, ...';

COMMENT ON COLUMN optimizer_event.site IS 'Where; NULL: not known.';

COMMENT ON COLUMN optimizer_event.moment IS 'When.';

COMMENT ON COLUMN optimizer_event.set_to_none IS 'Of zero_grad; NULL: another kind.';

COMMENT ON COLUMN optimizer_event.with_grad IS 'Tensors that had a gradient.';

COMMENT ON COLUMN optimizer_event.without_grad IS 'Tensors that had none.';

COMMENT ON COLUMN optimizer_event.changed IS 'Tensors whose version rose.';

COMMENT ON COLUMN optimizer_event.scale IS 'Of a gradient scaler: its factor after it; NULL: none, or not read.';

COMMENT ON COLUMN optimizer_event.scale_before IS 'Of a gradient scaler: its factor before; NULL: none, or not read.';

COMMENT ON COLUMN optimizer_event.found_inf IS 'Of a gradient scaler: a gradient was not finite; NULL: another kind, or not read.';

COMMENT ON COLUMN optimizer_event.skipped IS 'Of scaler_step: it left the optimizer''s step out; NULL: another kind.';

COMMENT ON COLUMN optimizer_event.class IS 'Of the scheduler or scaler; NULL: another kind.';

COMMENT ON COLUMN optimizer_event.clip_limit IS 'Of clipping: the greatest norm or value allowed; NULL: another kind.';

COMMENT ON COLUMN optimizer_event.norm_type IS 'Of clip_grad_norm: the order of the norm; NULL: another kind.';

COMMENT ON COLUMN optimizer_event.total_norm IS 'Of clip_grad_norm: the norm before; NULL: another kind, or not read.';

COMMENT ON COLUMN optimizer_event.learning_rates IS 'After it, by group; empty: not read; NULL: of a record of version 1.';

CREATE TABLE policy (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	body JSONB NOT NULL, 
	created_by TEXT NOT NULL, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	CONSTRAINT pk_policy PRIMARY KEY (id), 
	CONSTRAINT uq_policy_public_id_revision UNIQUE (public_id, revision), 
	CONSTRAINT uq_policy_tenant_id_name_revision UNIQUE (tenant_id, name, revision), 
	CONSTRAINT fk_policy_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

COMMENT ON TABLE policy IS 'One revision of the rules that decide an audit.';

COMMENT ON COLUMN policy.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN policy.public_id IS 'What the API shows: pol_ and a UUIDv7 in base32, the same for all its revisions.';

COMMENT ON COLUMN policy.tenant_id IS 'Whose it is.';

COMMENT ON COLUMN policy.name IS 'For people.';

COMMENT ON COLUMN policy.revision IS 'Counts from 1; a revision never changes, so an old audit keeps what it was judged by.';

COMMENT ON COLUMN policy.body IS 'Which rules fail an audit, as in [policy].';

COMMENT ON COLUMN policy.created_by IS 'The actor that wrote this revision.';

COMMENT ON COLUMN policy.created_at IS 'When it was written.';

CREATE TABLE audit_log (
	id BIGSERIAL NOT NULL, 
	at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	tenant_id BIGINT, 
	actor TEXT NOT NULL, 
	action TEXT NOT NULL, 
	object TEXT NOT NULL, 
	request_id TEXT NOT NULL, 
	address TEXT, 
	detail JSONB, 
	CONSTRAINT pk_audit_log PRIMARY KEY (id), 
	CONSTRAINT fk_audit_log_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

CREATE INDEX audit_log_of_tenant ON audit_log (tenant_id, id DESC);

COMMENT ON TABLE audit_log IS 'Every write that somebody asked for. A trigger refuses changes and deletions.';

COMMENT ON COLUMN audit_log.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN audit_log.at IS 'When.';

COMMENT ON COLUMN audit_log.tenant_id IS 'Whose affair; NULL: the operator''s.';

COMMENT ON COLUMN audit_log.actor IS 'Who: key:..., user:... or local.';

COMMENT ON COLUMN audit_log.action IS 'What: run.submit, key.create, ...';

COMMENT ON COLUMN audit_log.object IS 'Public id of what it was done to.';

COMMENT ON COLUMN audit_log.request_id IS 'Of the request.';

COMMENT ON COLUMN audit_log.address IS 'Where the request came from; NULL: not over the network.';

COMMENT ON COLUMN audit_log.detail IS 'More, never content; NULL: nothing.';

CREATE FUNCTION audit_log_stays() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  RAISE EXCEPTION 'audit_log: rows are only added' USING ERRCODE = 'check_violation';
END $body$;

CREATE TRIGGER audit_log_stays BEFORE UPDATE OR DELETE ON audit_log
FOR EACH ROW EXECUTE FUNCTION audit_log_stays();

CREATE TABLE deprecated_use (
	tenant_id BIGINT NOT NULL, 
	actor TEXT NOT NULL, 
	operation TEXT NOT NULL, 
	times BIGINT NOT NULL, 
	first_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	last_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	CONSTRAINT pk_deprecated_use PRIMARY KEY (tenant_id, actor, operation), 
	CONSTRAINT fk_deprecated_use_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

COMMENT ON TABLE deprecated_use IS 'Who still uses an operation of the API that will go.';

COMMENT ON COLUMN deprecated_use.tenant_id IS 'Whose caller.';

COMMENT ON COLUMN deprecated_use.actor IS 'Who asked: key:..., user:... or local.';

COMMENT ON COLUMN deprecated_use.operation IS 'What for: GET /v1/things/<thing>.';

COMMENT ON COLUMN deprecated_use.times IS 'How often.';

COMMENT ON COLUMN deprecated_use.first_at IS 'When it was first asked for.';

COMMENT ON COLUMN deprecated_use.last_at IS 'When it was last asked for.';

CREATE TABLE project (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	settings JSONB NOT NULL, 
	keep_days INTEGER, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	archived_at TIMESTAMP(3) WITH TIME ZONE, 
	CONSTRAINT pk_project PRIMARY KEY (id), 
	CONSTRAINT uq_project_tenant_id_name UNIQUE (tenant_id, name), 
	CONSTRAINT uq_project_public_id UNIQUE (public_id), 
	CONSTRAINT fk_project_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

COMMENT ON TABLE project IS 'Runs that belong together; it holds their settings and their findings'' states.';

COMMENT ON COLUMN project.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN project.public_id IS 'What the API shows: prj_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN project.tenant_id IS 'Whose it is.';

COMMENT ON COLUMN project.name IS 'For people; unique in its tenant.';

COMMENT ON COLUMN project.settings IS 'The keys of [tool.backprobe] that hold for its runs.';

COMMENT ON COLUMN project.keep_days IS 'Days that a record is kept; NULL: as the tenant says.';

COMMENT ON COLUMN project.created_at IS 'When it was made.';

COMMENT ON COLUMN project.archived_at IS 'When it was put away; NULL: in use.';

CREATE TABLE snippet (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	sha256 BYTEA NOT NULL, 
	entry TEXT NOT NULL, 
	files SMALLINT NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	kept_until TIMESTAMP(3) WITH TIME ZONE, 
	named BOOLEAN DEFAULT true NOT NULL, 
	CONSTRAINT pk_snippet PRIMARY KEY (id), 
	CONSTRAINT uq_snippet_tenant_id_sha256 UNIQUE (tenant_id, sha256), 
	CONSTRAINT uq_snippet_public_id UNIQUE (public_id), 
	CONSTRAINT fk_snippet_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

CREATE INDEX snippet_kept ON snippet (kept_until) WHERE kept_until is not null;

COMMENT ON TABLE snippet IS 'A program as submitted: one file or several with an entry. Never changed.';

COMMENT ON COLUMN snippet.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN snippet.public_id IS 'What the API shows: snp_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN snippet.tenant_id IS 'Whose it is.';

COMMENT ON COLUMN snippet.sha256 IS 'Over entry, paths and contents, and whether it is named; the same program is stored once per tenant.';

COMMENT ON COLUMN snippet.entry IS 'Path of the file that is run, or the module that `python -m` would run.';

COMMENT ON COLUMN snippet.files IS 'How many files.';

COMMENT ON COLUMN snippet.size_bytes IS 'Bytes of all files.';

COMMENT ON COLUMN snippet.created_at IS 'When it first came.';

COMMENT ON COLUMN snippet.kept_until IS 'Then it is asked whether a run still keeps its files; NULL: they are gone.';

COMMENT ON COLUMN snippet.named IS 'Whoever sent it named its file; else it came as `source` alone, and its path is ours.';

CREATE TABLE audit (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT NOT NULL, 
	policy_id BIGINT, 
	baseline_id BIGINT, 
	name TEXT NOT NULL, 
	status TEXT NOT NULL, 
	items INTEGER NOT NULL, 
	labels JSONB NOT NULL, 
	created_by TEXT NOT NULL, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	finished_at TIMESTAMP(3) WITH TIME ZONE, 
	version INTEGER NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (id), 
	CONSTRAINT ck_audit_status CHECK (status in ('open', 'running', 'judged', 'canceled')), 
	CONSTRAINT uq_audit_public_id UNIQUE (public_id), 
	CONSTRAINT fk_audit_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_audit_project_id FOREIGN KEY(project_id) REFERENCES project (id), 
	CONSTRAINT fk_audit_policy_id FOREIGN KEY(policy_id) REFERENCES policy (id), 
	CONSTRAINT fk_audit_baseline_id FOREIGN KEY(baseline_id) REFERENCES audit (id)
);

CREATE INDEX audit_waiting ON audit (id) WHERE status in ('open', 'running');

CREATE INDEX audit_of_project ON audit (project_id, created_at DESC, id DESC);

COMMENT ON TABLE audit IS 'A batch of runs judged together.';

COMMENT ON COLUMN audit.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN audit.public_id IS 'What the API shows: aud_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN audit.tenant_id IS 'Whose it is.';

COMMENT ON COLUMN audit.project_id IS 'Where it belongs.';

COMMENT ON COLUMN audit.policy_id IS 'The revision that it is judged by; NULL: the built-in one.';

COMMENT ON COLUMN audit.baseline_id IS 'Its findings are known and do not fail this one; NULL: none.';

COMMENT ON COLUMN audit.name IS 'For people.';

COMMENT ON COLUMN audit.status IS 'open: items may still come; running: all are there; judged; canceled.';

COMMENT ON COLUMN audit.items IS 'How many items it has.';

COMMENT ON COLUMN audit.labels IS 'The caller''s labels, text by name.';

COMMENT ON COLUMN audit.created_by IS 'The actor.';

COMMENT ON COLUMN audit.created_at IS 'When it was accepted.';

COMMENT ON COLUMN audit.finished_at IS 'When it was judged or canceled; NULL: it is open.';

COMMENT ON COLUMN audit.version IS 'Rises with every change a reader can see: the ETag.';

CREATE TABLE api_key (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT, 
	name TEXT NOT NULL, 
	prefix TEXT NOT NULL, 
	hash BYTEA NOT NULL, 
	scopes JSONB NOT NULL, 
	created_by TEXT NOT NULL, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	expires_at TIMESTAMP(3) WITH TIME ZONE, 
	last_used_at TIMESTAMP(3) WITH TIME ZONE, 
	revoked_at TIMESTAMP(3) WITH TIME ZONE, 
	CONSTRAINT pk_api_key PRIMARY KEY (id), 
	CONSTRAINT uq_api_key_prefix UNIQUE (prefix), 
	CONSTRAINT uq_api_key_public_id UNIQUE (public_id), 
	CONSTRAINT fk_api_key_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_api_key_project_id FOREIGN KEY(project_id) REFERENCES project (id)
);

CREATE INDEX api_key_of_tenant ON api_key (tenant_id, id DESC);

COMMENT ON TABLE api_key IS 'A key to the API.';

COMMENT ON COLUMN api_key.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN api_key.public_id IS 'What the API shows: key_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN api_key.tenant_id IS 'Whose it is.';

COMMENT ON COLUMN api_key.project_id IS 'It opens this project only; NULL: all of the tenant''s.';

COMMENT ON COLUMN api_key.name IS 'For people.';

COMMENT ON COLUMN api_key.prefix IS 'The part of the key that is shown, and by which it is found.';

COMMENT ON COLUMN api_key.hash IS 'HMAC-SHA-256 of the whole key under the server''s secret; the key itself is nowhere.';

COMMENT ON COLUMN api_key.scopes IS 'What it allows: read, runs:write, ..., admin.';

COMMENT ON COLUMN api_key.created_by IS 'The actor that made it.';

COMMENT ON COLUMN api_key.created_at IS 'When it was made.';

COMMENT ON COLUMN api_key.expires_at IS 'From then on it opens nothing; NULL: it does not expire.';

COMMENT ON COLUMN api_key.last_used_at IS 'When it last opened something, to the minute; NULL: never.';

COMMENT ON COLUMN api_key.revoked_at IS 'When it was taken back; NULL: it was not.';

CREATE TABLE snippet_file (
	snippet_id BIGINT NOT NULL, 
	n SMALLINT NOT NULL, 
	path TEXT NOT NULL, 
	sha256 BYTEA NOT NULL, 
	is_text BOOLEAN NOT NULL, 
	body BYTEA NOT NULL, 
	CONSTRAINT pk_snippet_file PRIMARY KEY (snippet_id, n), 
	CONSTRAINT uq_snippet_file_snippet_id_path UNIQUE (snippet_id, path), 
	CONSTRAINT fk_snippet_file_snippet_id FOREIGN KEY(snippet_id) REFERENCES snippet (id)
);

COMMENT ON TABLE snippet_file IS 'One file of a snippet.';

COMMENT ON COLUMN snippet_file.snippet_id IS 'Which snippet.';

COMMENT ON COLUMN snippet_file.n IS 'Its place among the snippet''s files, from 0, in order of the path.';

COMMENT ON COLUMN snippet_file.path IS 'Relative POSIX path.';

COMMENT ON COLUMN snippet_file.sha256 IS 'Of the bytes.';

COMMENT ON COLUMN snippet_file.is_text IS 'It is UTF-8 text; else a file that the program reads.';

COMMENT ON COLUMN snippet_file.body IS 'The bytes.';

CREATE TABLE run (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	part SMALLINT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT NOT NULL, 
	snippet_id BIGINT, 
	origin TEXT NOT NULL, 
	rerun_of_id BIGINT, 
	custom_id TEXT, 
	labels JSONB NOT NULL, 
	created_by TEXT NOT NULL, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	traceparent TEXT, 
	version INTEGER NOT NULL, 
	queue TEXT NOT NULL, 
	device_class TEXT, 
	min_isolation TEXT NOT NULL, 
	priority SMALLINT NOT NULL, 
	queued_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	rank_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	not_before TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	queue_deadline TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	status TEXT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	max_attempts SMALLINT NOT NULL, 
	lease_owner TEXT, 
	lease_until TIMESTAMP(3) WITH TIME ZONE, 
	heartbeat_at TIMESTAMP(3) WITH TIME ZONE, 
	claimed_at TIMESTAMP(3) WITH TIME ZONE, 
	cancel_requested_at TIMESTAMP(3) WITH TIME ZONE, 
	result_attempt SMALLINT, 
	arguments JSONB NOT NULL, 
	limits JSONB NOT NULL, 
	capture JSONB NOT NULL, 
	seed BIGINT, 
	started_at TIMESTAMP(3) WITH TIME ZONE, 
	finished_at TIMESTAMP(3) WITH TIME ZONE, 
	exit_code INTEGER, 
	signal SMALLINT, 
	limit_hit TEXT, 
	error_code TEXT, 
	error JSONB, 
	isolation JSONB, 
	wall_seconds DOUBLE PRECISION, 
	cpu_seconds DOUBLE PRECISION, 
	max_rss_bytes BIGINT, 
	torch_version TEXT, 
	record_state TEXT NOT NULL, 
	tier TEXT, 
	tensors INTEGER NOT NULL, 
	snapshots BIGINT NOT NULL, 
	nodes INTEGER NOT NULL, 
	backward_calls INTEGER NOT NULL, 
	record_bytes BIGINT NOT NULL, 
	peak_held_bytes BIGINT, 
	truncated BOOLEAN NOT NULL, 
	errors INTEGER NOT NULL, 
	warnings INTEGER NOT NULL, 
	notes INTEGER NOT NULL, 
	suppressed INTEGER NOT NULL, 
	ruleset TEXT, 
	rules_judged INTEGER NOT NULL, 
	rules_not_run INTEGER NOT NULL, 
	judge_due_at TIMESTAMP(3) WITH TIME ZONE, 
	events INTEGER NOT NULL, 
	kept_until TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	pinned BOOLEAN NOT NULL, 
	rules JSONB, 
	record_gone TEXT, 
	trial_of TEXT, 
	trial_fix SMALLINT, 
	trial_verdict TEXT, 
	trial_why TEXT, 
	judge_attempts SMALLINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_run PRIMARY KEY (id), 
	CONSTRAINT ck_run_origin CHECK (origin in ('submitted', 'watched', 'uploaded', 'trial')), 
	CONSTRAINT ck_run_queue CHECK (queue in ('cpu', 'gpu')), 
	CONSTRAINT ck_run_min_isolation CHECK (min_isolation in ('none', 'process', 'namespace', 'gvisor')), 
	CONSTRAINT ck_run_status CHECK (status in ('queued', 'running', 'succeeded', 'failed', 'exceeded', 'canceled', 'lost')), 
	CONSTRAINT ck_run_record_state CHECK (record_state in ('none', 'partial', 'whole', 'expired')), 
	CONSTRAINT ck_run_priority CHECK (priority between 0 and 9), 
	CONSTRAINT ck_run_lease CHECK ((status = 'running') = (lease_until is not null)), 
	CONSTRAINT ck_run_finished CHECK ((status in ('queued', 'running')) = (finished_at is null)), 
	CONSTRAINT ck_run_attempts CHECK (attempt <= max_attempts), 
	CONSTRAINT ck_run_result_attempt CHECK (result_attempt <= attempt), 
	CONSTRAINT uq_run_public_id UNIQUE (public_id), 
	CONSTRAINT fk_run_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_run_project_id FOREIGN KEY(project_id) REFERENCES project (id), 
	CONSTRAINT fk_run_snippet_id FOREIGN KEY(snippet_id) REFERENCES snippet (id), 
	CONSTRAINT fk_run_rerun_of_id FOREIGN KEY(rerun_of_id) REFERENCES run (id)
);

CREATE INDEX run_of_snippet ON run (snippet_id);

CREATE INDEX run_pinned ON run (part) WHERE pinned;

CREATE INDEX run_claims ON run (tenant_id, claimed_at);

CREATE INDEX run_queue ON run (queue, tenant_id, rank_at, id) WHERE status = 'queued';

CREATE INDEX run_finished ON run (finished_at) WHERE finished_at is not null;

CREATE INDEX run_newest ON run (tenant_id, created_at DESC, id DESC);

CREATE INDEX run_judge_due ON run (judge_due_at) WHERE judge_due_at is not null;

CREATE INDEX run_judge_attempts ON run (judge_attempts) WHERE judge_attempts > 0;

CREATE INDEX run_of_trial ON run (trial_of) WHERE trial_of is not null;

CREATE INDEX run_kept ON run (kept_until) WHERE record_state in ('partial', 'whole');

CREATE INDEX run_busy ON run (tenant_id) WHERE status = 'running';

CREATE INDEX run_of_project ON run (project_id, created_at DESC, id DESC);

CREATE INDEX run_lease ON run (lease_until) WHERE status = 'running';

COMMENT ON TABLE run IS 'One execution of a snippet; while it is queued, its place in the queue.';

COMMENT ON COLUMN run.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN run.public_id IS 'What the API shows: run_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN run.part IS 'Months since 2020-01 of the time in public_id: the partition of its record.';

COMMENT ON COLUMN run.tenant_id IS 'Whose it is.';

COMMENT ON COLUMN run.project_id IS 'Where it belongs.';

COMMENT ON COLUMN run.snippet_id IS 'What it runs; NULL: watched or uploaded.';

COMMENT ON COLUMN run.origin IS 'submitted: a snippet we ran. watched: a recorder sent it. uploaded: a finished record. trial: a snippet with a finding''s fix in it.';

COMMENT ON COLUMN run.rerun_of_id IS 'The run whose snippet it repeats; NULL: none.';

COMMENT ON COLUMN run.custom_id IS 'The caller''s own name for it; NULL: none.';

COMMENT ON COLUMN run.labels IS 'The caller''s labels, text by name.';

COMMENT ON COLUMN run.created_by IS 'The actor: key:..., user:... or local.';

COMMENT ON COLUMN run.created_at IS 'When it was accepted.';

COMMENT ON COLUMN run.traceparent IS 'W3C trace context of the request; NULL: none.';

COMMENT ON COLUMN run.version IS 'Rises with every change a reader can see: the ETag.';

COMMENT ON COLUMN run.queue IS 'cpu or gpu.';

COMMENT ON COLUMN run.device_class IS 'A worker must offer this device; NULL: any.';

COMMENT ON COLUMN run.min_isolation IS 'The least isolation level accepted; below it the run is refused, never downgraded.';

COMMENT ON COLUMN run.priority IS '0 first to 9 last; a step is worth 60 s of waiting.';

COMMENT ON COLUMN run.queued_at IS 'When it was last queued.';

COMMENT ON COLUMN run.rank_at IS 'Its place in the queue: queued_at + priority x 60 s, so that waiting raises it without an update.';

COMMENT ON COLUMN run.not_before IS 'It is not claimed earlier: the pause after a failure of ours.';

COMMENT ON COLUMN run.queue_deadline IS 'If nobody has claimed it by then, it is lost.';

COMMENT ON COLUMN run.status IS 'See store/runs/states.py; kept by a trigger.';

COMMENT ON COLUMN run.attempt IS 'Claims so far: the fencing token. Every write of a worker demands that it is still its own.';

COMMENT ON COLUMN run.max_attempts IS 'Attempts that our own failures may use up.';

COMMENT ON COLUMN run.lease_owner IS 'worker_node.id that holds it; NULL: not running.';

COMMENT ON COLUMN run.lease_until IS 'Until then it is that worker''s; NULL exactly if it is not running.';

COMMENT ON COLUMN run.heartbeat_at IS 'When its worker last renewed the lease; NULL: never.';

COMMENT ON COLUMN run.claimed_at IS 'When it was last claimed; NULL: never.';

COMMENT ON COLUMN run.cancel_requested_at IS 'When its end was asked for; NULL: it was not.';

COMMENT ON COLUMN run.result_attempt IS 'Whose record rows are visible; NULL: none are.';

COMMENT ON COLUMN run.arguments IS 'sys.argv[1:].';

COMMENT ON COLUMN run.limits IS 'By name, in the units of store/runs/limits.py.';

COMMENT ON COLUMN run.capture IS 'What is captured: tier and sampling.';

COMMENT ON COLUMN run.seed IS 'For torch.manual_seed before the program; NULL: left alone.';

COMMENT ON COLUMN run.started_at IS 'When its last attempt began; NULL: none has.';

COMMENT ON COLUMN run.finished_at IS 'When it ended; NULL exactly while it is queued or running.';

COMMENT ON COLUMN run.exit_code IS 'Of the child; NULL: it did not exit.';

COMMENT ON COLUMN run.signal IS 'That killed the child; NULL: none did.';

COMMENT ON COLUMN run.limit_hit IS 'Name of the limit that stopped it; NULL: none did.';

COMMENT ON COLUMN run.error_code IS 'Kebab case: why it did not succeed; NULL: it did, or has not ended.';

COMMENT ON COLUMN run.error IS 'whose, type, message, path, line; NULL as error_code.';

COMMENT ON COLUMN run.isolation IS 'What it really ran under, attested from outside; NULL: it has not run.';

COMMENT ON COLUMN run.wall_seconds IS 'From the start of the program to its end; NULL: not measured.';

COMMENT ON COLUMN run.cpu_seconds IS 'User and system time of all its processes; NULL: not measured.';

COMMENT ON COLUMN run.max_rss_bytes IS 'Largest resident memory; NULL: not measured.';

COMMENT ON COLUMN run.torch_version IS 'torch.__version__ in the child; NULL: not known.';

COMMENT ON COLUMN run.record_state IS 'none; partial: it stopped early; whole; expired: it was kept and is gone.';

COMMENT ON COLUMN run.tier IS 'Capture tier of its record; NULL: no record.';

COMMENT ON COLUMN run.tensors IS 'Tensors in the record.';

COMMENT ON COLUMN run.snapshots IS 'Snapshots in the record.';

COMMENT ON COLUMN run.nodes IS 'Autograd nodes in the record.';

COMMENT ON COLUMN run.backward_calls IS 'Backward calls in the record.';

COMMENT ON COLUMN run.record_bytes IS 'Bytes that the record takes here, indices apart.';

COMMENT ON COLUMN run.peak_held_bytes IS 'Most bytes that graphs held for backward at a call; NULL: no call.';

COMMENT ON COLUMN run.truncated IS 'The record says itself that something is missing.';

COMMENT ON COLUMN run.errors IS 'Findings of level error that are not suppressed.';

COMMENT ON COLUMN run.warnings IS 'Findings of level warning that are not suppressed.';

COMMENT ON COLUMN run.notes IS 'Findings of level note that are not suppressed.';

COMMENT ON COLUMN run.suppressed IS 'Findings that are suppressed.';

COMMENT ON COLUMN run.ruleset IS 'Digest of the rules that judged it; NULL: not judged.';

COMMENT ON COLUMN run.rules_judged IS 'Rules that ran to their end.';

COMMENT ON COLUMN run.rules_not_run IS 'Rules that lacked a fact; not run is not passed.';

COMMENT ON COLUMN run.judge_due_at IS 'When it is to be judged again; NULL: it is not.';

COMMENT ON COLUMN run.events IS 'seq of its last run_event; 0: none.';

COMMENT ON COLUMN run.kept_until IS 'Its record is kept till then.';

COMMENT ON COLUMN run.pinned IS 'Its record is never expired.';

COMMENT ON COLUMN run.rules IS 'Which rules judge it, and how, as the request said; NULL: all, as they stand.';

COMMENT ON COLUMN run.record_gone IS 'Why its record is gone: kept-until, database-full or deleted; NULL: it is there, or nobody noted why.';

COMMENT ON COLUMN run.trial_of IS 'finding.public_id of the finding whose fix it tries; NULL: it is no trial.';

COMMENT ON COLUMN run.trial_fix IS 'Which of that finding''s fixes, from 0; NULL: it is no trial.';

COMMENT ON COLUMN run.trial_verdict IS 'Of confirmed, changes-values, insufficient, breaks, not-tried; NULL: no trial, or not ended, or not judged.';

COMMENT ON COLUMN run.trial_why IS 'What stands against the fix, or why no run tells; NULL as trial_verdict.';

COMMENT ON COLUMN run.judge_attempts IS 'Judgings of its stored record that began and did not end: the process ended first. From 3 on it is not judged any more. 0: the last one ended, or none began.';

CREATE FUNCTION run_keeps_its_life() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF old.status <> new.status AND old.status || '>' || new.status NOT IN ('queued>running', 'queued>canceled', 'queued>lost', 'running>succeeded', 'running>failed', 'running>exceeded', 'running>canceled', 'running>queued', 'running>lost') THEN
    RAISE EXCEPTION 'run.status: no such move, % to %', old.status, new.status USING ERRCODE = 'check_violation';
  END IF;
  IF new.attempt < old.attempt THEN
    RAISE EXCEPTION 'run.attempt never falls' USING ERRCODE = 'check_violation';
  END IF;
  RETURN new;
END $body$;

CREATE TRIGGER run_keeps_its_life BEFORE UPDATE OF status, attempt ON run
FOR EACH ROW WHEN (old.status <> new.status OR new.attempt < old.attempt)
EXECUTE FUNCTION run_keeps_its_life();

CREATE TABLE webhook (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT, 
	url TEXT NOT NULL, 
	events JSONB NOT NULL, 
	secret BYTEA NOT NULL, 
	old_secret BYTEA, 
	old_until TIMESTAMP(3) WITH TIME ZONE, 
	enabled BOOLEAN NOT NULL, 
	disabled_reason TEXT, 
	failures INTEGER NOT NULL, 
	failing_since TIMESTAMP(3) WITH TIME ZONE, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	version INTEGER NOT NULL, 
	CONSTRAINT pk_webhook PRIMARY KEY (id), 
	CONSTRAINT uq_webhook_public_id UNIQUE (public_id), 
	CONSTRAINT fk_webhook_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_webhook_project_id FOREIGN KEY(project_id) REFERENCES project (id)
);

CREATE INDEX webhook_of_tenant ON webhook (tenant_id, id DESC);

COMMENT ON TABLE webhook IS 'An address that wants to hear of events.';

COMMENT ON COLUMN webhook.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN webhook.public_id IS 'What the API shows: wh_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN webhook.tenant_id IS 'Whose it is.';

COMMENT ON COLUMN webhook.project_id IS 'Events of this project only; NULL: all of the tenant''s.';

COMMENT ON COLUMN webhook.url IS 'Where events are posted.';

COMMENT ON COLUMN webhook.events IS 'Kinds that it wants: run.ended, audit.judged, finding.new, finding.returned.';

COMMENT ON COLUMN webhook.secret IS 'Signs deliveries; sealed by the service, never in the clear.';

COMMENT ON COLUMN webhook.old_secret IS 'Signs them too until old_until; NULL: none.';

COMMENT ON COLUMN webhook.old_until IS 'When the old secret ends; NULL: there is none.';

COMMENT ON COLUMN webhook.enabled IS 'Events go there.';

COMMENT ON COLUMN webhook.disabled_reason IS 'Why none go there; NULL: they do, or somebody switched it off.';

COMMENT ON COLUMN webhook.failures IS 'Tries that failed in a row.';

COMMENT ON COLUMN webhook.failing_since IS 'When the first of these was; NULL: the last one succeeded, or there was none.';

COMMENT ON COLUMN webhook.created_at IS 'When it was made.';

COMMENT ON COLUMN webhook.version IS 'Rises with every change: the ETag.';

CREATE TABLE outbox (
	id BIGSERIAL NOT NULL, 
	event_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	body JSONB NOT NULL, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	planned_at TIMESTAMP(3) WITH TIME ZONE, 
	CONSTRAINT pk_outbox PRIMARY KEY (id), 
	CONSTRAINT uq_outbox_event_id UNIQUE (event_id), 
	CONSTRAINT fk_outbox_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_outbox_project_id FOREIGN KEY(project_id) REFERENCES project (id)
);

CREATE INDEX outbox_age ON outbox (created_at);

CREATE INDEX outbox_unplanned ON outbox (id) WHERE planned_at is null;

COMMENT ON TABLE outbox IS 'An event that is to leave; written in the transaction of what it tells.';

COMMENT ON COLUMN outbox.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN outbox.event_id IS 'What receivers tell doubles by: the webhook-id.';

COMMENT ON COLUMN outbox.tenant_id IS 'Whose event.';

COMMENT ON COLUMN outbox.project_id IS 'Of which project; NULL: of none.';

COMMENT ON COLUMN outbox.kind IS 'run.ended, audit.judged, finding.new or finding.returned.';

COMMENT ON COLUMN outbox.subject IS 'Public id of what it is about.';

COMMENT ON COLUMN outbox.body IS 'What receivers get as data: ids, status and counts.';

COMMENT ON COLUMN outbox.created_at IS 'When it happened.';

COMMENT ON COLUMN outbox.planned_at IS 'When its deliveries were made; NULL: not yet.';

CREATE TABLE audit_item (
	audit_id BIGINT NOT NULL, 
	n INTEGER NOT NULL, 
	custom_id TEXT, 
	run_id BIGINT, 
	problem JSONB, 
	ended BOOLEAN NOT NULL, 
	CONSTRAINT pk_audit_item PRIMARY KEY (audit_id, n), 
	CONSTRAINT uq_audit_item_audit_id_custom_id UNIQUE (audit_id, custom_id), 
	CONSTRAINT fk_audit_item_audit_id FOREIGN KEY(audit_id) REFERENCES audit (id), 
	CONSTRAINT fk_audit_item_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE INDEX audit_item_run ON audit_item (run_id);

CREATE INDEX audit_item_open ON audit_item (audit_id) WHERE not ended;

COMMENT ON TABLE audit_item IS 'One run of an audit.';

COMMENT ON COLUMN audit_item.audit_id IS 'Of which audit.';

COMMENT ON COLUMN audit_item.n IS 'Its place, from 0.';

COMMENT ON COLUMN audit_item.custom_id IS 'The caller''s own name for it, unique in the audit; NULL: its line gives none, or one that is taken.';

COMMENT ON COLUMN audit_item.run_id IS 'Its run; NULL: it was refused.';

COMMENT ON COLUMN audit_item.problem IS 'Why it was refused; NULL: it was not.';

COMMENT ON COLUMN audit_item.ended IS 'Its run has ended, or it was refused.';

CREATE TABLE audit_verdict (
	audit_id BIGINT NOT NULL, 
	ruleset TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	counts JSONB NOT NULL, 
	judged_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	CONSTRAINT pk_audit_verdict PRIMARY KEY (audit_id, ruleset), 
	CONSTRAINT ck_audit_verdict_verdict CHECK (verdict in ('passed', 'failed')), 
	CONSTRAINT fk_audit_verdict_audit_id FOREIGN KEY(audit_id) REFERENCES audit (id)
);

COMMENT ON TABLE audit_verdict IS 'What an audit came to, under one set of rules.';

COMMENT ON COLUMN audit_verdict.audit_id IS 'Of which audit.';

COMMENT ON COLUMN audit_verdict.ruleset IS 'Digest of the rules that judged it.';

COMMENT ON COLUMN audit_verdict.verdict IS 'passed or failed.';

COMMENT ON COLUMN audit_verdict.counts IS 'Items by verdict, findings new, known and gone.';

COMMENT ON COLUMN audit_verdict.judged_at IS 'When.';

CREATE TABLE audit_cell (
	audit_id BIGINT NOT NULL, 
	ruleset TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	rule TEXT NOT NULL, 
	state TEXT NOT NULL, 
	findings INTEGER NOT NULL, 
	known INTEGER NOT NULL, 
	CONSTRAINT pk_audit_cell PRIMARY KEY (audit_id, ruleset, n, rule), 
	CONSTRAINT ck_audit_cell_state CHECK (state in ('warn', 'fail', 'not-run')), 
	CONSTRAINT fk_audit_cell_audit_id FOREIGN KEY(audit_id) REFERENCES audit (id)
);

COMMENT ON TABLE audit_cell IS 'One rule''s word on one item of an audit.';

COMMENT ON COLUMN audit_cell.audit_id IS 'Of which audit.';

COMMENT ON COLUMN audit_cell.ruleset IS 'As in audit_verdict.';

COMMENT ON COLUMN audit_cell.n IS 'Which item.';

COMMENT ON COLUMN audit_cell.rule IS 'Which rule, kebab case.';

COMMENT ON COLUMN audit_cell.state IS 'warn, fail or not-run; a pass has no row.';

COMMENT ON COLUMN audit_cell.findings IS 'How many findings.';

COMMENT ON COLUMN audit_cell.known IS 'How many of them the baseline had.';

CREATE TABLE finding (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT NOT NULL, 
	n INTEGER NOT NULL, 
	fingerprint TEXT NOT NULL, 
	rule TEXT NOT NULL, 
	code TEXT NOT NULL, 
	ruleset TEXT NOT NULL, 
	level TEXT NOT NULL, 
	confidence TEXT NOT NULL, 
	message TEXT NOT NULL, 
	path TEXT NOT NULL, 
	line INTEGER NOT NULL, 
	location JSONB NOT NULL, 
	related JSONB NOT NULL, 
	stacks JSONB NOT NULL, 
	evidence JSONB NOT NULL, 
	fixes JSONB NOT NULL, 
	consequences JSONB NOT NULL, 
	suppressed JSONB, 
	tensor INTEGER, 
	call INTEGER, 
	moment INTEGER, 
	count INTEGER NOT NULL, 
	first_step INTEGER, 
	last_step INTEGER, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	gone_at TIMESTAMP(3) WITH TIME ZONE, 
	gone_ruleset TEXT, 
	CONSTRAINT pk_finding PRIMARY KEY (id), 
	CONSTRAINT ck_finding_level CHECK (level in ('error', 'warning', 'note')), 
	CONSTRAINT ck_finding_confidence CHECK (confidence in ('proven', 'likely', 'heuristic')), 
	CONSTRAINT uq_finding_public_id UNIQUE (public_id), 
	CONSTRAINT fk_finding_run_id FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT fk_finding_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_finding_project_id FOREIGN KEY(project_id) REFERENCES project (id)
);

CREATE INDEX finding_of_run ON finding (run_id, attempt, level, line);

CREATE INDEX finding_of_rule ON finding (tenant_id, rule, created_at DESC, run_id);

CREATE INDEX finding_of_group ON finding (project_id, fingerprint, created_at DESC, id);

COMMENT ON TABLE finding IS 'A rule''s verdict at a source line of one run.';

COMMENT ON COLUMN finding.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN finding.public_id IS 'What the API shows: f_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN finding.run_id IS 'About which run.';

COMMENT ON COLUMN finding.attempt IS 'About which attempt''s record.';

COMMENT ON COLUMN finding.tenant_id IS 'Whose it is.';

COMMENT ON COLUMN finding.project_id IS 'Where it belongs.';

COMMENT ON COLUMN finding.n IS 'Its place in the judgement: worst first, then in order of the source.';

COMMENT ON COLUMN finding.fingerprint IS 'Identity across runs and edits elsewhere.';

COMMENT ON COLUMN finding.rule IS 'Name of the rule, kebab case.';

COMMENT ON COLUMN finding.code IS 'Code of the rule, BP101.';

COMMENT ON COLUMN finding.ruleset IS 'Digest of the rules that said so.';

COMMENT ON COLUMN finding.level IS 'How bad: error, warning or note.';

COMMENT ON COLUMN finding.confidence IS 'How sure: proven, likely or heuristic.';

COMMENT ON COLUMN finding.message IS 'What was seen, why it matters, what to change.';

COMMENT ON COLUMN finding.path IS 'File of its location, relative POSIX.';

COMMENT ON COLUMN finding.line IS 'First line of its location, 1-based.';

COMMENT ON COLUMN finding.location IS 'path, region, text, function.';

COMMENT ON COLUMN finding.related IS 'Other places of the story, in order.';

COMMENT ON COLUMN finding.stacks IS 'Call stacks, each with its part in the story.';

COMMENT ON COLUMN finding.evidence IS 'The facts that carry the verdict.';

COMMENT ON COLUMN finding.fixes IS 'What to change.';

COMMENT ON COLUMN finding.consequences IS 'Findings of other rules that follow from this one.';

COMMENT ON COLUMN finding.suppressed IS 'Why it is not to be shown; NULL: it is shown.';

COMMENT ON COLUMN finding.tensor IS 'The tensor it is about; NULL: none.';

COMMENT ON COLUMN finding.call IS 'The backward call it is about; NULL: none.';

COMMENT ON COLUMN finding.moment IS 'The moment it is about; NULL: none.';

COMMENT ON COLUMN finding.count IS 'How often the same was found.';

COMMENT ON COLUMN finding.first_step IS 'Optimizer steps finished at the first; NULL: not known.';

COMMENT ON COLUMN finding.last_step IS 'Optimizer steps finished at the last; NULL: not known.';

COMMENT ON COLUMN finding.created_at IS 'When it was stored.';

COMMENT ON COLUMN finding.gone_at IS 'When newer rules no longer said so; NULL: they still do.';

COMMENT ON COLUMN finding.gone_ruleset IS 'Those rules; NULL as gone_at.';

CREATE TABLE finding_group (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	rule TEXT NOT NULL, 
	level TEXT NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT, 
	state_by TEXT, 
	state_at TIMESTAMP(3) WITH TIME ZONE, 
	owner TEXT, 
	first_run_id BIGINT NOT NULL, 
	last_run_id BIGINT NOT NULL, 
	first_seen_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	last_seen_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	runs INTEGER NOT NULL, 
	returned INTEGER NOT NULL, 
	path TEXT NOT NULL, 
	line INTEGER NOT NULL, 
	message TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	CONSTRAINT pk_finding_group PRIMARY KEY (id), 
	CONSTRAINT ck_finding_group_level CHECK (level in ('error', 'warning', 'note')), 
	CONSTRAINT ck_finding_group_state CHECK (state in ('open', 'acknowledged', 'suppressed', 'fixed')), 
	CONSTRAINT uq_finding_group_project_id_fingerprint UNIQUE (project_id, fingerprint), 
	CONSTRAINT uq_finding_group_public_id UNIQUE (public_id), 
	CONSTRAINT fk_finding_group_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_finding_group_project_id FOREIGN KEY(project_id) REFERENCES project (id), 
	CONSTRAINT fk_finding_group_first_run_id FOREIGN KEY(first_run_id) REFERENCES run (id), 
	CONSTRAINT fk_finding_group_last_run_id FOREIGN KEY(last_run_id) REFERENCES run (id)
);

CREATE INDEX finding_group_newest ON finding_group (project_id, state, last_seen_at DESC, id);

COMMENT ON TABLE finding_group IS 'The same finding over all runs of a project; its findings are those with its fingerprint.';

COMMENT ON COLUMN finding_group.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN finding_group.public_id IS 'What the API shows: fg_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN finding_group.tenant_id IS 'Whose it is.';

COMMENT ON COLUMN finding_group.project_id IS 'Where it belongs.';

COMMENT ON COLUMN finding_group.fingerprint IS 'What its findings have in common, finding.fingerprint.';

COMMENT ON COLUMN finding_group.rule IS 'Name of the rule, kebab case.';

COMMENT ON COLUMN finding_group.level IS 'Of the finding seen last: error, warning or note.';

COMMENT ON COLUMN finding_group.state IS 'What people made of it: open, acknowledged, suppressed or fixed.';

COMMENT ON COLUMN finding_group.reason IS 'Why it has this state; NULL: nobody said.';

COMMENT ON COLUMN finding_group.state_by IS 'The actor that set the state; NULL: nobody did.';

COMMENT ON COLUMN finding_group.state_at IS 'When the state was set; NULL: never.';

COMMENT ON COLUMN finding_group.owner IS 'Whose task it is; NULL: nobody''s.';

COMMENT ON COLUMN finding_group.first_run_id IS 'The run that showed it first.';

COMMENT ON COLUMN finding_group.last_run_id IS 'The run that showed it last.';

COMMENT ON COLUMN finding_group.first_seen_at IS 'When it was first stored.';

COMMENT ON COLUMN finding_group.last_seen_at IS 'When it was last stored.';

COMMENT ON COLUMN finding_group.runs IS 'Runs that showed it.';

COMMENT ON COLUMN finding_group.returned IS 'How often it was seen again after it was fixed.';

COMMENT ON COLUMN finding_group.path IS 'File of the finding seen last, relative POSIX.';

COMMENT ON COLUMN finding_group.line IS 'First line of the finding seen last, 1-based.';

COMMENT ON COLUMN finding_group.message IS 'Of the finding seen last.';

COMMENT ON COLUMN finding_group.version IS 'Rises with every change: the ETag.';

CREATE TABLE idempotency (
	tenant_id BIGINT NOT NULL, 
	key TEXT NOT NULL, 
	request_hash BYTEA NOT NULL, 
	state TEXT NOT NULL, 
	run_id BIGINT, 
	status SMALLINT, 
	headers JSONB, 
	body BYTEA, 
	created_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	expires_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	CONSTRAINT pk_idempotency PRIMARY KEY (tenant_id, key), 
	CONSTRAINT ck_idempotency_state CHECK (state in ('in-flight', 'done')), 
	CONSTRAINT ck_idempotency_answered CHECK ((state = 'done') = (status is not null)), 
	CONSTRAINT fk_idempotency_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_idempotency_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE INDEX idempotency_expires ON idempotency (expires_at);

COMMENT ON TABLE idempotency IS 'A request that must not take effect twice, and its answer.';

COMMENT ON COLUMN idempotency.tenant_id IS 'Whose request.';

COMMENT ON COLUMN idempotency.key IS 'The caller''s Idempotency-Key.';

COMMENT ON COLUMN idempotency.request_hash IS 'Over method, path and body: the same key with another request is refused.';

COMMENT ON COLUMN idempotency.state IS 'in-flight: not answered yet; done: the answer is here.';

COMMENT ON COLUMN idempotency.run_id IS 'The run that it made, which is shown as it now is; NULL: none.';

COMMENT ON COLUMN idempotency.status IS 'HTTP status of the answer; NULL: in flight.';

COMMENT ON COLUMN idempotency.headers IS 'Headers of the answer worth repeating; NULL: in flight.';

COMMENT ON COLUMN idempotency.body IS 'Body of the answer; NULL: in flight, or the run is the answer.';

COMMENT ON COLUMN idempotency.created_at IS 'When it first came.';

COMMENT ON COLUMN idempotency.expires_at IS 'From then on the key is free again.';

CREATE TABLE recorder (
	run_id BIGINT NOT NULL, 
	asked BYTEA NOT NULL, 
	environment JSONB NOT NULL, 
	next_frame INTEGER NOT NULL, 
	rows BIGINT NOT NULL, 
	last TEXT, 
	told JSONB, 
	CONSTRAINT pk_recorder PRIMARY KEY (run_id), 
	CONSTRAINT fk_recorder_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

COMMENT ON TABLE recorder IS 'The recorder of a watched run.';

COMMENT ON COLUMN recorder.run_id IS 'Which watched run.';

COMMENT ON COLUMN recorder.asked IS 'SHA-256 of the request that made it: the same once more is no error, another is.';

COMMENT ON COLUMN recorder.environment IS 'Where the job runs, in the recorder''s words: text by name.';

COMMENT ON COLUMN recorder.next_frame IS 'Number of the frame that is wanted next: so many have come.';

COMMENT ON COLUMN recorder.rows IS 'Rows in them.';

COMMENT ON COLUMN recorder.last IS 'What the last frame was: header, end or a table; NULL: none has come.';

COMMENT ON COLUMN recorder.told IS 'How the job ended, as its recorder told; NULL: it has not told.';

CREATE TABLE frame (
	run_id BIGINT NOT NULL, 
	n INTEGER NOT NULL, 
	sha256 BYTEA NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	body BYTEA, 
	CONSTRAINT pk_frame PRIMARY KEY (run_id, n), 
	CONSTRAINT fk_frame_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE INDEX frame_kept ON frame (run_id) WHERE body is not null;

CREATE INDEX frame_at ON frame (at);

COMMENT ON TABLE frame IS 'A frame that a recorder sent.';

COMMENT ON COLUMN frame.run_id IS 'Of which watched run.';

COMMENT ON COLUMN frame.n IS 'Its number, from 0.';

COMMENT ON COLUMN frame.sha256 IS 'Of its bytes: the same number with other bytes is refused.';

COMMENT ON COLUMN frame.size_bytes IS 'How many bytes.';

COMMENT ON COLUMN frame.at IS 'When it came.';

COMMENT ON COLUMN frame.body IS 'Its bytes; NULL: its run has ended, and the record has its rows.';

CREATE TABLE run_attempt (
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	worker TEXT NOT NULL, 
	started_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	ended_at TIMESTAMP(3) WITH TIME ZONE, 
	outcome TEXT, 
	detail JSONB, 
	isolation JSONB, 
	CONSTRAINT pk_run_attempt PRIMARY KEY (run_id, attempt), 
	CONSTRAINT fk_run_attempt_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE INDEX run_attempt_ended ON run_attempt (ended_at) WHERE ended_at is not null;

COMMENT ON TABLE run_attempt IS 'One claim of a run by a worker, and how it ended.';

COMMENT ON COLUMN run_attempt.run_id IS 'Which run.';

COMMENT ON COLUMN run_attempt.attempt IS 'Which attempt, from 1.';

COMMENT ON COLUMN run_attempt.worker IS 'worker_node.id of who made it; that row may be gone.';

COMMENT ON COLUMN run_attempt.started_at IS 'When it was claimed.';

COMMENT ON COLUMN run_attempt.ended_at IS 'When it ended; NULL: it has not.';

COMMENT ON COLUMN run_attempt.outcome IS 'finished, worker-lost, sandbox-broke, released, canceled; NULL: it has not ended.';

COMMENT ON COLUMN run_attempt.detail IS 'More about its end; NULL: nothing.';

COMMENT ON COLUMN run_attempt.isolation IS 'What it ran under; NULL: not known.';

CREATE TABLE delivery (
	id BIGSERIAL NOT NULL, 
	public_id TEXT NOT NULL, 
	outbox_id BIGINT NOT NULL, 
	webhook_id BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	attempts SMALLINT NOT NULL, 
	next_at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	lease_until TIMESTAMP(3) WITH TIME ZONE, 
	CONSTRAINT pk_delivery PRIMARY KEY (id), 
	CONSTRAINT ck_delivery_state CHECK (state in ('pending', 'delivered', 'dead', 'canceled')), 
	CONSTRAINT uq_delivery_outbox_id_webhook_id UNIQUE (outbox_id, webhook_id), 
	CONSTRAINT uq_delivery_public_id UNIQUE (public_id), 
	CONSTRAINT fk_delivery_outbox_id FOREIGN KEY(outbox_id) REFERENCES outbox (id), 
	CONSTRAINT fk_delivery_webhook_id FOREIGN KEY(webhook_id) REFERENCES webhook (id)
);

CREATE INDEX delivery_of_webhook ON delivery (webhook_id, id DESC);

CREATE INDEX delivery_dead ON delivery (id) WHERE state = 'dead';

CREATE INDEX delivery_due ON delivery (next_at) WHERE state = 'pending';

COMMENT ON TABLE delivery IS 'One event on its way to one webhook.';

COMMENT ON COLUMN delivery.id IS 'Number of the row; never shown outside.';

COMMENT ON COLUMN delivery.public_id IS 'What the API shows: dlv_ and a UUIDv7 in base32, or a fixed word.';

COMMENT ON COLUMN delivery.outbox_id IS 'Which event.';

COMMENT ON COLUMN delivery.webhook_id IS 'Where to.';

COMMENT ON COLUMN delivery.state IS 'pending; delivered; dead: given up; canceled: its webhook was switched off.';

COMMENT ON COLUMN delivery.attempts IS 'Tries so far.';

COMMENT ON COLUMN delivery.next_at IS 'When it is tried next.';

COMMENT ON COLUMN delivery.lease_until IS 'Till then somebody tries it; NULL: nobody does.';

CREATE TABLE delivery_try (
	delivery_id BIGINT NOT NULL, 
	n SMALLINT NOT NULL, 
	at TIMESTAMP(3) WITH TIME ZONE NOT NULL, 
	address TEXT NOT NULL, 
	status SMALLINT, 
	ms INTEGER NOT NULL, 
	error TEXT, 
	answer TEXT, 
	CONSTRAINT pk_delivery_try PRIMARY KEY (delivery_id, n), 
	CONSTRAINT fk_delivery_try_delivery_id FOREIGN KEY(delivery_id) REFERENCES delivery (id)
);

CREATE INDEX delivery_try_at ON delivery_try (at);

COMMENT ON TABLE delivery_try IS 'One try at a delivery.';

COMMENT ON COLUMN delivery_try.delivery_id IS 'Of which delivery.';

COMMENT ON COLUMN delivery_try.n IS 'Which try, from 1.';

COMMENT ON COLUMN delivery_try.at IS 'When it ended.';

COMMENT ON COLUMN delivery_try.address IS 'The address it went to; empty: none was allowed or found.';

COMMENT ON COLUMN delivery_try.status IS 'HTTP status of the answer; NULL: there was none.';

COMMENT ON COLUMN delivery_try.ms IS 'How long it took, in milliseconds.';

COMMENT ON COLUMN delivery_try.error IS 'Why there was no answer; NULL: there was one.';

COMMENT ON COLUMN delivery_try.answer IS 'At most 1 KiB of the answer, a stranger''s text; NULL: there was none.';

CREATE FUNCTION i2s(b bytea) RETURNS smallint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$
DECLARE
  n int := length(b) / 2;
  v smallint[] := array_fill(NULL::smallint, ARRAY[n]);
  u bigint;
BEGIN
  b := b || ''::bytea;
  FOR i IN 0 .. n - 1 LOOP
    u := 0;
    FOR j IN REVERSE 1 .. 0 LOOP
      u := (u << 8) | get_byte(b, i * 2 + j);
    END LOOP;
    v[i + 1] := u - ((u >> 15) << 16);
  END LOOP;
  RETURN v;
END $body$;

CREATE FUNCTION i4s(b bytea) RETURNS int[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$
DECLARE
  n int := length(b) / 4;
  v int[] := array_fill(NULL::int, ARRAY[n]);
  u bigint;
BEGIN
  b := b || ''::bytea;
  FOR i IN 0 .. n - 1 LOOP
    u := 0;
    FOR j IN REVERSE 3 .. 0 LOOP
      u := (u << 8) | get_byte(b, i * 4 + j);
    END LOOP;
    v[i + 1] := u - ((u >> 31) << 32);
  END LOOP;
  RETURN v;
END $body$;

CREATE FUNCTION i8s(b bytea) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$
DECLARE
  n int := length(b) / 8;
  v bigint[] := array_fill(NULL::bigint, ARRAY[n]);
  u bigint;
BEGIN
  b := b || ''::bytea;
  FOR i IN 0 .. n - 1 LOOP
    u := 0;
    FOR j IN REVERSE 7 .. 0 LOOP
      u := (u << 8) | get_byte(b, i * 8 + j);
    END LOOP;
    v[i + 1] := u;
  END LOOP;
  RETURN v;
END $body$;

CREATE FUNCTION f4s(b bytea) RETURNS real[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$
DECLARE
  n int := length(b) / 4;
  v real[] := array_fill(NULL::real, ARRAY[n]);
  m int;
  e int;
  s int;
BEGIN
  b := b || ''::bytea;
  FOR i IN 0 .. n - 1 LOOP
    s := 1 - 2 * (get_byte(b, 4 * i + 3) >> 7);
    e := ((get_byte(b, 4 * i + 3) & 127) << 1) | (get_byte(b, 4 * i + 2) >> 7);
    m := ((get_byte(b, 4 * i + 2) & 127) << 16) | (get_byte(b, 4 * i + 1) << 8) | get_byte(b, 4 * i);
    IF e = 255 THEN
      IF m = 0 THEN
        v[i + 1] := s * 'Infinity'::real;
      ELSIF m <> 4194305 THEN
        v[i + 1] := 'NaN';
      END IF;
    ELSIF e = 0 THEN
      v[i + 1] := s * m * power(2::float8, -149);
    ELSE
      v[i + 1] := s * (m + 8388608) * power(2::float8, e - 150);
    END IF;
  END LOOP;
  RETURN v;
END $body$;

CREATE VIEW snapshot AS SELECT run,
part,
run_id,
tensor,
CASE WHEN moment_step <> 0 THEN first_moment + moment_step * i ELSE a_moments[i + 1] END AS moment,
CASE WHEN (flags & 1) <> 0 THEN true ELSE false END AS is_leaf,
CASE WHEN (flags & 2) <> 0 THEN true ELSE false END AS requires_grad,
CASE WHEN (flags & 4) <> 0 THEN true ELSE false END AS retains_grad,
grad_fns ->> (nullif(coalesce(CASE WHEN cardinality(a_grad_fn) = 1 THEN a_grad_fn[1] ELSE a_grad_fn[i + 1] END, 0), 0) - 1) AS grad_fn,
CASE WHEN (flags & 16) <> 0 THEN 'none' WHEN (flags & 32) <> 0 THEN 'not-read' ELSE 'present' END AS grad,
nullif(coalesce(CASE WHEN cardinality(a_version) = 1 THEN a_version[1] ELSE a_version[i + 1] END, 0) + version_step * i, -1) AS version,
nullif(coalesce(CASE WHEN cardinality(a_grad_id) = 1 THEN a_grad_id[1] ELSE a_grad_id[i + 1] END, -1), -1) AS grad_id,
nullif(coalesce(CASE WHEN cardinality(a_grad_version) = 1 THEN a_grad_version[1] ELSE a_grad_version[i + 1] END, -1), -1) AS grad_version,
CASE WHEN (flags & 256) <> 0 THEN (CASE WHEN cardinality(a_value_norm) = 1 THEN a_value_norm[1] ELSE a_value_norm[i + 1] END) END AS value_norm,
CASE WHEN (flags & 256) <> 0 THEN (CASE WHEN cardinality(a_value_sum) = 1 THEN a_value_sum[1] ELSE a_value_sum[i + 1] END) END AS value_sum,
CASE WHEN (flags & 256) <> 0 THEN (CASE WHEN cardinality(a_value_min) = 1 THEN a_value_min[1] ELSE a_value_min[i + 1] END) END AS value_min,
CASE WHEN (flags & 256) <> 0 THEN (CASE WHEN cardinality(a_value_max) = 1 THEN a_value_max[1] ELSE a_value_max[i + 1] END) END AS value_max,
CASE WHEN (flags & 256) <> 0 THEN coalesce(CASE WHEN cardinality(a_value_nan) = 1 THEN a_value_nan[1] ELSE a_value_nan[i + 1] END, 0) END AS value_nan,
CASE WHEN (flags & 256) <> 0 THEN coalesce(CASE WHEN cardinality(a_value_inf) = 1 THEN a_value_inf[1] ELSE a_value_inf[i + 1] END, 0) END AS value_inf,
CASE WHEN (flags & 256) <> 0 THEN coalesce(CASE WHEN cardinality(a_value_zeros) = 1 THEN a_value_zeros[1] ELSE a_value_zeros[i + 1] END, 0) END AS value_zeros,
CASE WHEN (flags & 256) <> 0 THEN coalesce(CASE WHEN cardinality(a_value_counted) = 1 THEN a_value_counted[1] ELSE a_value_counted[i + 1] END, 0) END AS value_counted,
CASE WHEN (flags & 512) <> 0 THEN (CASE WHEN cardinality(a_grad_norm) = 1 THEN a_grad_norm[1] ELSE a_grad_norm[i + 1] END) END AS grad_norm,
CASE WHEN (flags & 512) <> 0 THEN (CASE WHEN cardinality(a_grad_sum) = 1 THEN a_grad_sum[1] ELSE a_grad_sum[i + 1] END) END AS grad_sum,
CASE WHEN (flags & 512) <> 0 THEN (CASE WHEN cardinality(a_grad_min) = 1 THEN a_grad_min[1] ELSE a_grad_min[i + 1] END) END AS grad_min,
CASE WHEN (flags & 512) <> 0 THEN (CASE WHEN cardinality(a_grad_max) = 1 THEN a_grad_max[1] ELSE a_grad_max[i + 1] END) END AS grad_max,
CASE WHEN (flags & 512) <> 0 THEN coalesce(CASE WHEN cardinality(a_grad_nan) = 1 THEN a_grad_nan[1] ELSE a_grad_nan[i + 1] END, 0) END AS grad_nan,
CASE WHEN (flags & 512) <> 0 THEN coalesce(CASE WHEN cardinality(a_grad_inf) = 1 THEN a_grad_inf[1] ELSE a_grad_inf[i + 1] END, 0) END AS grad_inf,
CASE WHEN (flags & 512) <> 0 THEN coalesce(CASE WHEN cardinality(a_grad_zeros) = 1 THEN a_grad_zeros[1] ELSE a_grad_zeros[i + 1] END, 0) END AS grad_zeros,
CASE WHEN (flags & 512) <> 0 THEN coalesce(CASE WHEN cardinality(a_grad_counted) = 1 THEN a_grad_counted[1] ELSE a_grad_counted[i + 1] END, 0) END AS grad_counted
FROM (SELECT r.public_id AS run, c.part, c.run_id, c.tensor, c.first_moment, c.moment_step, c.version_step, h.grad_fns, a.*, k.i, coalesce(CASE WHEN cardinality(a_flags) = 1 THEN a_flags[1] ELSE a_flags[i + 1] END, 0) AS flags
FROM run r JOIN snapshot_chunk c ON c.part = r.part AND c.run_id = r.id AND c.attempt = r.result_attempt
LEFT JOIN record h ON h.part = c.part AND h.run_id = c.run_id AND h.attempt = c.attempt
CROSS JOIN LATERAL (SELECT c.n, i4s(c.moments) AS a_moments, i2s(c.flags) AS a_flags, i4s(c.grad_fn) AS a_grad_fn, i4s(c.version) AS a_version, i4s(c.grad_id) AS a_grad_id, i4s(c.grad_version) AS a_grad_version, f4s(c.value_norm) AS a_value_norm, f4s(c.value_sum) AS a_value_sum, f4s(c.value_min) AS a_value_min, f4s(c.value_max) AS a_value_max, i8s(c.value_nan) AS a_value_nan, i8s(c.value_inf) AS a_value_inf, i8s(c.value_zeros) AS a_value_zeros, i8s(c.value_counted) AS a_value_counted, f4s(c.grad_norm) AS a_grad_norm, f4s(c.grad_sum) AS a_grad_sum, f4s(c.grad_min) AS a_grad_min, f4s(c.grad_max) AS a_grad_max, i8s(c.grad_nan) AS a_grad_nan, i8s(c.grad_inf) AS a_grad_inf, i8s(c.grad_zeros) AS a_grad_zeros, i8s(c.grad_counted) AS a_grad_counted OFFSET 0) a
CROSS JOIN LATERAL (SELECT generate_series(0, a.n - 1) AS i) k) s;

CREATE FUNCTION stored_snippet_programs() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 512 + coalesce(octet_length(new.entry::text), 0);
    owner := new.tenant_id;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (512 + coalesce(octet_length(old.entry::text), 0));
    owner := old.tenant_id;
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'programs', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_snippet_programs AFTER INSERT OR DELETE ON snippet FOR EACH ROW EXECUTE FUNCTION stored_snippet_programs();

CREATE FUNCTION stored_snippet_file_programs() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 256 + coalesce(octet_length(new.path), 0) + coalesce(octet_length(new.body), 0);
    owner := (SELECT tenant_id FROM snippet WHERE id = new.snippet_id);
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (256 + coalesce(octet_length(old.path), 0) + coalesce(octet_length(old.body), 0));
    owner := (SELECT tenant_id FROM snippet WHERE id = old.snippet_id);
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'programs', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_snippet_file_programs AFTER INSERT OR DELETE ON snippet_file FOR EACH ROW EXECUTE FUNCTION stored_snippet_file_programs();

CREATE FUNCTION stored_run_runs() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 2048 + coalesce(octet_length(new.labels::text), 0) + coalesce(octet_length(new.arguments::text), 0) + coalesce(octet_length(new.rules::text), 0) + coalesce(octet_length(new.custom_id::text), 0);
    owner := new.tenant_id;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (2048 + coalesce(octet_length(old.labels::text), 0) + coalesce(octet_length(old.arguments::text), 0) + coalesce(octet_length(old.rules::text), 0) + coalesce(octet_length(old.custom_id::text), 0));
    owner := old.tenant_id;
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'runs', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_run_runs AFTER INSERT OR DELETE OR UPDATE OF labels ON run FOR EACH ROW EXECUTE FUNCTION stored_run_runs();

CREATE FUNCTION stored_run_records() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := CASE WHEN new.record_state = 'expired' THEN 0 ELSE new.record_bytes END;
    owner := new.tenant_id;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (CASE WHEN old.record_state = 'expired' THEN 0 ELSE old.record_bytes END);
    owner := old.tenant_id;
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'records', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_run_records AFTER INSERT OR DELETE OR UPDATE OF record_bytes, record_state ON run FOR EACH ROW EXECUTE FUNCTION stored_run_records();

CREATE FUNCTION stored_recorder_runs() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 256 + coalesce(octet_length(new.environment::text), 0);
    owner := (SELECT tenant_id FROM run WHERE id = new.run_id);
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (256 + coalesce(octet_length(old.environment::text), 0));
    owner := (SELECT tenant_id FROM run WHERE id = old.run_id);
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'runs', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_recorder_runs AFTER INSERT OR DELETE ON recorder FOR EACH ROW EXECUTE FUNCTION stored_recorder_runs();

CREATE FUNCTION stored_finding_findings() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 512 + coalesce(octet_length(new.message::text), 0) + coalesce(octet_length(new.location::text), 0) + coalesce(octet_length(new.related::text), 0) + coalesce(octet_length(new.stacks::text), 0) + coalesce(octet_length(new.evidence::text), 0) + coalesce(octet_length(new.fixes::text), 0) + coalesce(octet_length(new.consequences::text), 0);
    owner := new.tenant_id;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (512 + coalesce(octet_length(old.message::text), 0) + coalesce(octet_length(old.location::text), 0) + coalesce(octet_length(old.related::text), 0) + coalesce(octet_length(old.stacks::text), 0) + coalesce(octet_length(old.evidence::text), 0) + coalesce(octet_length(old.fixes::text), 0) + coalesce(octet_length(old.consequences::text), 0));
    owner := old.tenant_id;
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'findings', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_finding_findings AFTER INSERT OR DELETE ON finding FOR EACH ROW EXECUTE FUNCTION stored_finding_findings();

CREATE FUNCTION stored_policy_audits() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 256 + coalesce(octet_length(new.name::text), 0) + coalesce(octet_length(new.body::text), 0);
    owner := new.tenant_id;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (256 + coalesce(octet_length(old.name::text), 0) + coalesce(octet_length(old.body::text), 0));
    owner := old.tenant_id;
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'audits', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_policy_audits AFTER INSERT OR DELETE ON policy FOR EACH ROW EXECUTE FUNCTION stored_policy_audits();

CREATE FUNCTION stored_audit_audits() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 512 + coalesce(octet_length(new.name::text), 0) + coalesce(octet_length(new.labels::text), 0);
    owner := new.tenant_id;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (512 + coalesce(octet_length(old.name::text), 0) + coalesce(octet_length(old.labels::text), 0));
    owner := old.tenant_id;
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'audits', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_audit_audits AFTER INSERT OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION stored_audit_audits();

CREATE FUNCTION stored_audit_item_audits() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 128 + coalesce(octet_length(new.custom_id::text), 0) + coalesce(octet_length(new.problem::text), 0);
    owner := (SELECT tenant_id FROM audit WHERE id = new.audit_id);
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (128 + coalesce(octet_length(old.custom_id::text), 0) + coalesce(octet_length(old.problem::text), 0));
    owner := (SELECT tenant_id FROM audit WHERE id = old.audit_id);
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'audits', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_audit_item_audits AFTER INSERT OR DELETE ON audit_item FOR EACH ROW EXECUTE FUNCTION stored_audit_item_audits();

CREATE FUNCTION stored_audit_verdict_audits() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 256 + coalesce(octet_length(new.counts::text), 0);
    owner := (SELECT tenant_id FROM audit WHERE id = new.audit_id);
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (256 + coalesce(octet_length(old.counts::text), 0));
    owner := (SELECT tenant_id FROM audit WHERE id = old.audit_id);
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'audits', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_audit_verdict_audits AFTER INSERT OR DELETE ON audit_verdict FOR EACH ROW EXECUTE FUNCTION stored_audit_verdict_audits();

CREATE FUNCTION stored_audit_cell_audits() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 128 + coalesce(octet_length(new.rule::text), 0);
    owner := (SELECT tenant_id FROM audit WHERE id = new.audit_id);
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (128 + coalesce(octet_length(old.rule::text), 0));
    owner := (SELECT tenant_id FROM audit WHERE id = old.audit_id);
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'audits', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_audit_cell_audits AFTER INSERT OR DELETE ON audit_cell FOR EACH ROW EXECUTE FUNCTION stored_audit_cell_audits();

CREATE FUNCTION stored_webhook_webhooks() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 1024 + coalesce(octet_length(new.url::text), 0) + coalesce(octet_length(new.events::text), 0);
    owner := new.tenant_id;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (1024 + coalesce(octet_length(old.url::text), 0) + coalesce(octet_length(old.events::text), 0));
    owner := old.tenant_id;
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'webhooks', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_webhook_webhooks AFTER INSERT OR DELETE OR UPDATE OF url, events ON webhook FOR EACH ROW EXECUTE FUNCTION stored_webhook_webhooks();

CREATE FUNCTION stored_delivery_webhooks() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 256;
    owner := (SELECT tenant_id FROM webhook WHERE id = new.webhook_id);
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (256);
    owner := (SELECT tenant_id FROM webhook WHERE id = old.webhook_id);
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'webhooks', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_delivery_webhooks AFTER INSERT OR DELETE ON delivery FOR EACH ROW EXECUTE FUNCTION stored_delivery_webhooks();

CREATE FUNCTION stored_delivery_try_webhooks() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 128 + coalesce(octet_length(new.address::text), 0) + coalesce(octet_length(new.error::text), 0) + coalesce(octet_length(new.answer::text), 0);
    owner := (SELECT w.tenant_id FROM delivery d JOIN webhook w ON w.id = d.webhook_id WHERE d.id = new.delivery_id);
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (128 + coalesce(octet_length(old.address::text), 0) + coalesce(octet_length(old.error::text), 0) + coalesce(octet_length(old.answer::text), 0));
    owner := (SELECT w.tenant_id FROM delivery d JOIN webhook w ON w.id = d.webhook_id WHERE d.id = old.delivery_id);
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'webhooks', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_delivery_try_webhooks AFTER INSERT OR DELETE ON delivery_try FOR EACH ROW EXECUTE FUNCTION stored_delivery_try_webhooks();

CREATE FUNCTION stored_project_projects() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  change bigint := 0;
  owner bigint;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    change := 512 + coalesce(octet_length(new.name::text), 0) + coalesce(octet_length(new.settings::text), 0);
    owner := new.tenant_id;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    change := change - (512 + coalesce(octet_length(old.name::text), 0) + coalesce(octet_length(old.settings::text), 0));
    owner := old.tenant_id;
  END IF;
  IF change <> 0 THEN
    INSERT INTO stored_bytes (tenant_id, kind, bytes) VALUES (owner, 'projects', change);
  END IF;
  RETURN NULL;
END $body$;

CREATE TRIGGER stored_project_projects AFTER INSERT OR DELETE OR UPDATE OF name, settings ON project FOR EACH ROW EXECUTE FUNCTION stored_project_projects();
