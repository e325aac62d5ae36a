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
	outputs JSON NOT NULL, 
	variable INTEGER, 
	custom TEXT, 
	custom_site INTEGER, 
	first_seen INTEGER NOT NULL, 
	died INTEGER, 
	saved_bytes BIGINT NOT NULL, 
	freed_by INTEGER, 
	candidates JSON, 
	CONSTRAINT pk_node PRIMARY KEY (part, run_id, attempt, node)
);

CREATE INDEX node_site ON node (part, run_id, attempt, site);

CREATE INDEX node_first_seen ON node (part, run_id, attempt, first_seen);

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
 WITHOUT ROWID;

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
	shape JSON NOT NULL, 
	dtype TEXT NOT NULL, 
	version INTEGER, 
	proof TEXT NOT NULL, 
	held_by TEXT NOT NULL, 
	CONSTRAINT pk_saved PRIMARY KEY (part, run_id, attempt, node, n)
)
 WITHOUT ROWID;

CREATE INDEX saved_tensor ON saved (part, run_id, attempt, tensor);

CREATE TABLE backward_call (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	call INTEGER NOT NULL, 
	entry TEXT NOT NULL, 
	site INTEGER, 
	thread SMALLINT NOT NULL, 
	parent INTEGER, 
	roots JSON NOT NULL, 
	inputs JSON, 
	retain_graph BOOLEAN NOT NULL, 
	retain_graph_given BOOLEAN, 
	create_graph BOOLEAN NOT NULL, 
	accumulate_grad BOOLEAN NOT NULL, 
	allow_unused BOOLEAN NOT NULL, 
	returned JSON, 
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
	returned_grads JSON, 
	CONSTRAINT pk_backward_call PRIMARY KEY (part, run_id, attempt, call), 
	CONSTRAINT ck_backward_call_outcome CHECK (outcome in ('running', 'finished', 'raised'))
);

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
 WITHOUT ROWID;

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
	holders JSON NOT NULL, 
	holder_search TEXT NOT NULL, 
	why TEXT, 
	CONSTRAINT pk_retention PRIMARY KEY (part, run_id, attempt, n), 
	CONSTRAINT ck_retention_state CHECK (state in ('held', 'freed', 'partly-freed', 'released'))
);

CREATE INDEX retention_root ON retention (part, run_id, attempt, root);

CREATE TABLE mode (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	n INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	"before" TEXT NOT NULL, 
	"after" TEXT NOT NULL, 
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
 WITHOUT ROWID;

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
	arguments JSON NOT NULL, 
	inputs JSON NOT NULL, 
	outputs JSON NOT NULL, 
	raised BOOLEAN NOT NULL, 
	col INTEGER, 
	CONSTRAINT pk_watched_call PRIMARY KEY (part, run_id, attempt, n)
);

CREATE INDEX watched_call_site ON watched_call (part, run_id, attempt, site);

CREATE INDEX watched_call_function ON watched_call (part, run_id, attempt, function);

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
	operands JSON NOT NULL, 
	"inner" JSON NOT NULL, 
	complete BOOLEAN NOT NULL, 
	result TEXT NOT NULL, 
	tensor INTEGER, 
	is_value BOOLEAN NOT NULL, 
	requires_grad BOOLEAN, 
	shape JSON, 
	dtype TEXT NOT NULL, 
	CONSTRAINT pk_operation PRIMARY KEY (part, run_id, attempt, operation), 
	CONSTRAINT ck_operation_result CHECK (result in ('tensor', 'tensors', 'number', 'array', 'other'))
);

CREATE INDEX operation_statement ON operation (part, run_id, attempt, statement);

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
	loss DOUBLE, 
	loss_tensor INTEGER, 
	grad_norm DOUBLE, 
	parameters_without_grad INTEGER, 
	backward_calls INTEGER NOT NULL, 
	learning_rate DOUBLE, 
	started_ns BIGINT NOT NULL, 
	duration_ns BIGINT NOT NULL, 
	own_ns BIGINT NOT NULL, 
	anomaly TEXT, 
	tensor INTEGER, 
	CONSTRAINT pk_step PRIMARY KEY (part, run_id, attempt, step)
)
 WITHOUT ROWID;

CREATE TABLE histogram (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	tensor INTEGER NOT NULL, 
	moment INTEGER NOT NULL, 
	"of" TEXT NOT NULL, 
	low DOUBLE NOT NULL, 
	high DOUBLE NOT NULL, 
	counts JSON NOT NULL, 
	below BIGINT NOT NULL, 
	above BIGINT NOT NULL, 
	nonfinite BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	scale TEXT NOT NULL, 
	zeros BIGINT NOT NULL, 
	CONSTRAINT pk_histogram PRIMARY KEY (part, run_id, attempt, tensor, moment, "of"), 
	CONSTRAINT ck_histogram_of CHECK (of in ('value', 'grad', 'arrived'))
);

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
 WITHOUT ROWID;

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
);

CREATE TABLE ended_login (
	login TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	ended_at VARCHAR NOT NULL, 
	CONSTRAINT pk_ended_login PRIMARY KEY (login)
);

CREATE INDEX ended_login_at ON ended_login (ended_at);

CREATE TABLE tenant (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	max_queued INTEGER NOT NULL, 
	max_running INTEGER NOT NULL, 
	weight INTEGER NOT NULL, 
	max_record_bytes BIGINT NOT NULL, 
	keep_days INTEGER NOT NULL, 
	created_at VARCHAR NOT NULL, 
	disabled_at VARCHAR, 
	max_gpu_seconds BIGINT, 
	CONSTRAINT pk_tenant PRIMARY KEY (id), 
	CONSTRAINT uq_tenant_public_id UNIQUE (public_id)
);

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
	environment JSON, 
	threads JSON NOT NULL, 
	sources JSON NOT NULL, 
	hooks JSON NOT NULL, 
	exceptions JSON NOT NULL, 
	warnings JSON NOT NULL, 
	streams JSON NOT NULL, 
	truncations JSON NOT NULL, 
	fallbacks JSON NOT NULL, 
	deviations JSON NOT NULL, 
	growth JSON NOT NULL, 
	grad_reads JSON NOT NULL, 
	tensor_notes JSON NOT NULL, 
	grad_fns JSON NOT NULL, 
	rules_not_run JSON NOT NULL, 
	gradient_checks JSON, 
	CONSTRAINT pk_record PRIMARY KEY (part, run_id, attempt)
);

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
	targets JSON NOT NULL, 
	reads JSON NOT NULL, 
	CONSTRAINT pk_site PRIMARY KEY (part, run_id, attempt, site)
)
 WITHOUT ROWID;

CREATE INDEX site_path_line ON site (part, run_id, attempt, path, line);

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
 WITHOUT ROWID;

CREATE INDEX moment_kind_k ON moment (part, run_id, attempt, kind, k);

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
	parameters JSON NOT NULL, 
	buffers JSON NOT NULL, 
	CONSTRAINT pk_module PRIMARY KEY (part, run_id, attempt, module)
);

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
 WITHOUT ROWID;

CREATE INDEX module_call_chain ON module_call (part, run_id, attempt, chain);

CREATE TABLE run_event (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	seq INTEGER NOT NULL, 
	at VARCHAR NOT NULL, 
	kind TEXT NOT NULL, 
	attempt SMALLINT, 
	payload JSON NOT NULL, 
	CONSTRAINT pk_run_event PRIMARY KEY (part, run_id, seq)
);

CREATE TABLE worker_node (
	id TEXT NOT NULL, 
	queues JSON NOT NULL, 
	levels JSON NOT NULL, 
	devices JSON NOT NULL, 
	versions JSON NOT NULL, 
	slots SMALLINT NOT NULL, 
	busy SMALLINT NOT NULL, 
	started_at VARCHAR NOT NULL, 
	heartbeat_at VARCHAR NOT NULL, 
	draining BOOLEAN NOT NULL, 
	probe JSON NOT NULL, 
	CONSTRAINT pk_worker_node PRIMARY KEY (id)
);

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
	moments BLOB, 
	flags BLOB, 
	grad_fn BLOB, 
	why BLOB, 
	grad_dtype BLOB, 
	why_site BLOB, 
	why_call BLOB, 
	version BLOB, 
	grad_id BLOB, 
	grad_version BLOB, 
	value_norm BLOB, 
	value_sum BLOB, 
	value_min BLOB, 
	value_max BLOB, 
	grad_norm BLOB, 
	grad_sum BLOB, 
	grad_min BLOB, 
	grad_max BLOB, 
	value_nan BLOB, 
	value_inf BLOB, 
	value_zeros BLOB, 
	value_counted BLOB, 
	grad_nan BLOB, 
	grad_inf BLOB, 
	grad_zeros BLOB, 
	grad_counted BLOB, 
	held_bytes BLOB, 
	overview BLOB, 
	CONSTRAINT pk_snapshot_chunk PRIMARY KEY (part, run_id, attempt, tensor, first_moment)
);

CREATE INDEX snapshot_chunk_nonfinite ON snapshot_chunk (part, run_id, attempt, tensor) WHERE nan_total + inf_total > 0;

CREATE INDEX snapshot_chunk_grad_norm ON snapshot_chunk (part, run_id, attempt, grad_norm_max DESC);

CREATE TABLE stored_bytes (
	id INTEGER NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	bytes BIGINT NOT NULL, 
	CONSTRAINT pk_stored_bytes PRIMARY KEY (id), 
	CONSTRAINT ck_stored_bytes_kind CHECK (kind in ('programs', 'runs', 'records', 'findings', 'audits', 'webhooks', 'projects'))
);

CREATE INDEX stored_bytes_of_tenant ON stored_bytes (tenant_id, kind, bytes);

CREATE TABLE tensor (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	tensor INTEGER NOT NULL, 
	name TEXT, 
	fqn TEXT, 
	role TEXT, 
	shape JSON, 
	stride JSON, 
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
);

CREATE INDEX tensor_grad_norm ON tensor (part, run_id, attempt, grad_norm DESC);

CREATE INDEX tensor_without_grad ON tensor (part, run_id, attempt, tensor) WHERE requires_grad and grad <> 'present';

CREATE INDEX tensor_line_tensor ON tensor (part, run_id, attempt, line, tensor);

CREATE INDEX tensor_name ON tensor (part, run_id, attempt, name);

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
	parents JSON NOT NULL, 
	CONSTRAINT pk_binding PRIMARY KEY (part, run_id, attempt, binding)
)
 WITHOUT ROWID;

CREATE INDEX binding_name ON binding (part, run_id, attempt, name);

CREATE INDEX binding_tensor ON binding (part, run_id, attempt, tensor);

CREATE TABLE small_value (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	tensor INTEGER NOT NULL, 
	moment INTEGER NOT NULL, 
	"of" TEXT NOT NULL, 
	dtype TEXT NOT NULL, 
	shape JSON NOT NULL, 
	elements BLOB NOT NULL, 
	CONSTRAINT pk_small_value PRIMARY KEY (part, run_id, attempt, tensor, moment, "of"), 
	CONSTRAINT ck_small_value_of CHECK (of in ('value', 'grad', 'arrived'))
)
 WITHOUT ROWID;

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
 WITHOUT ROWID;

CREATE INDEX leaf_grad_tensor_moment ON leaf_grad (part, run_id, attempt, tensor, moment);

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
 WITHOUT ROWID;

CREATE INDEX inplace_event_tensor ON inplace_event (part, run_id, attempt, tensor);

CREATE TABLE optimizer (
	part SMALLINT NOT NULL, 
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	optimizer INTEGER NOT NULL, 
	class TEXT NOT NULL, 
	binding TEXT, 
	site INTEGER, 
	moment INTEGER NOT NULL, 
	groups JSON NOT NULL, 
	tensors JSON NOT NULL, 
	CONSTRAINT pk_optimizer PRIMARY KEY (part, run_id, attempt, optimizer)
);

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
	scale DOUBLE, 
	scale_before DOUBLE, 
	found_inf BOOLEAN, 
	skipped BOOLEAN, 
	class TEXT, 
	clip_limit DOUBLE, 
	norm_type DOUBLE, 
	total_norm DOUBLE, 
	learning_rates JSON, 
	CONSTRAINT pk_optimizer_event PRIMARY KEY (part, run_id, attempt, n), 
	CONSTRAINT ck_optimizer_event_kind CHECK (kind in ('step', 'zero_grad', 'clip_grad_norm', 'clip_grad_value', 'scheduler_step', 'scaler_scale', 'scaler_unscale', 'scaler_step', 'scaler_update', 'add_param_group', 'load_state_dict'))
)
 WITHOUT ROWID;

CREATE TABLE policy (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	body JSON NOT NULL, 
	created_by TEXT NOT NULL, 
	created_at VARCHAR NOT NULL, 
	CONSTRAINT pk_policy PRIMARY KEY (id), 
	CONSTRAINT uq_policy_public_id_revision UNIQUE (public_id, revision), 
	CONSTRAINT uq_policy_tenant_id_name_revision UNIQUE (tenant_id, name, revision), 
	CONSTRAINT fk_policy_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

CREATE TABLE audit_log (
	id INTEGER NOT NULL, 
	at VARCHAR NOT NULL, 
	tenant_id BIGINT, 
	actor TEXT NOT NULL, 
	action TEXT NOT NULL, 
	object TEXT NOT NULL, 
	request_id TEXT NOT NULL, 
	address TEXT, 
	detail JSON, 
	CONSTRAINT pk_audit_log PRIMARY KEY (id), 
	CONSTRAINT fk_audit_log_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

CREATE INDEX audit_log_of_tenant ON audit_log (tenant_id, id DESC);

CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
BEGIN SELECT RAISE(ABORT, 'audit_log: rows are only added'); END;

CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log
BEGIN SELECT RAISE(ABORT, 'audit_log: rows are only added'); END;

CREATE TABLE deprecated_use (
	tenant_id BIGINT NOT NULL, 
	actor TEXT NOT NULL, 
	operation TEXT NOT NULL, 
	times BIGINT NOT NULL, 
	first_at VARCHAR NOT NULL, 
	last_at VARCHAR NOT NULL, 
	CONSTRAINT pk_deprecated_use PRIMARY KEY (tenant_id, actor, operation), 
	CONSTRAINT fk_deprecated_use_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

CREATE TABLE project (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	settings JSON NOT NULL, 
	keep_days INTEGER, 
	created_at VARCHAR NOT NULL, 
	archived_at VARCHAR, 
	CONSTRAINT pk_project PRIMARY KEY (id), 
	CONSTRAINT uq_project_tenant_id_name UNIQUE (tenant_id, name), 
	CONSTRAINT uq_project_public_id UNIQUE (public_id), 
	CONSTRAINT fk_project_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

CREATE TABLE snippet (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	sha256 BLOB NOT NULL, 
	entry TEXT NOT NULL, 
	files SMALLINT NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	created_at VARCHAR NOT NULL, 
	kept_until VARCHAR, 
	named BOOLEAN DEFAULT 1 NOT NULL, 
	CONSTRAINT pk_snippet PRIMARY KEY (id), 
	CONSTRAINT uq_snippet_tenant_id_sha256 UNIQUE (tenant_id, sha256), 
	CONSTRAINT uq_snippet_public_id UNIQUE (public_id), 
	CONSTRAINT fk_snippet_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);

CREATE INDEX snippet_kept ON snippet (kept_until) WHERE kept_until is not null;

CREATE TABLE audit (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT NOT NULL, 
	policy_id BIGINT, 
	baseline_id BIGINT, 
	name TEXT NOT NULL, 
	status TEXT NOT NULL, 
	items INTEGER NOT NULL, 
	labels JSON NOT NULL, 
	created_by TEXT NOT NULL, 
	created_at VARCHAR NOT NULL, 
	finished_at VARCHAR, 
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

CREATE TABLE api_key (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT, 
	name TEXT NOT NULL, 
	prefix TEXT NOT NULL, 
	hash BLOB NOT NULL, 
	scopes JSON NOT NULL, 
	created_by TEXT NOT NULL, 
	created_at VARCHAR NOT NULL, 
	expires_at VARCHAR, 
	last_used_at VARCHAR, 
	revoked_at VARCHAR, 
	CONSTRAINT pk_api_key PRIMARY KEY (id), 
	CONSTRAINT uq_api_key_prefix UNIQUE (prefix), 
	CONSTRAINT uq_api_key_public_id UNIQUE (public_id), 
	CONSTRAINT fk_api_key_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_api_key_project_id FOREIGN KEY(project_id) REFERENCES project (id)
);

CREATE INDEX api_key_of_tenant ON api_key (tenant_id, id DESC);

CREATE TABLE snippet_file (
	snippet_id BIGINT NOT NULL, 
	n SMALLINT NOT NULL, 
	path TEXT NOT NULL, 
	sha256 BLOB NOT NULL, 
	is_text BOOLEAN NOT NULL, 
	body BLOB NOT NULL, 
	CONSTRAINT pk_snippet_file PRIMARY KEY (snippet_id, n), 
	CONSTRAINT uq_snippet_file_snippet_id_path UNIQUE (snippet_id, path), 
	CONSTRAINT fk_snippet_file_snippet_id FOREIGN KEY(snippet_id) REFERENCES snippet (id)
);

CREATE TABLE run (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	part SMALLINT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT NOT NULL, 
	snippet_id BIGINT, 
	origin TEXT NOT NULL, 
	rerun_of_id BIGINT, 
	custom_id TEXT, 
	labels JSON NOT NULL, 
	created_by TEXT NOT NULL, 
	created_at VARCHAR NOT NULL, 
	traceparent TEXT, 
	version INTEGER NOT NULL, 
	queue TEXT NOT NULL, 
	device_class TEXT, 
	min_isolation TEXT NOT NULL, 
	priority SMALLINT NOT NULL, 
	queued_at VARCHAR NOT NULL, 
	rank_at VARCHAR NOT NULL, 
	not_before VARCHAR NOT NULL, 
	queue_deadline VARCHAR NOT NULL, 
	status TEXT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	max_attempts SMALLINT NOT NULL, 
	lease_owner TEXT, 
	lease_until VARCHAR, 
	heartbeat_at VARCHAR, 
	claimed_at VARCHAR, 
	cancel_requested_at VARCHAR, 
	result_attempt SMALLINT, 
	arguments JSON NOT NULL, 
	limits JSON NOT NULL, 
	capture JSON NOT NULL, 
	seed BIGINT, 
	started_at VARCHAR, 
	finished_at VARCHAR, 
	exit_code INTEGER, 
	signal SMALLINT, 
	limit_hit TEXT, 
	error_code TEXT, 
	error JSON, 
	isolation JSON, 
	wall_seconds DOUBLE, 
	cpu_seconds DOUBLE, 
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
	judge_due_at VARCHAR, 
	events INTEGER NOT NULL, 
	kept_until VARCHAR NOT NULL, 
	pinned BOOLEAN NOT NULL, 
	rules JSON, 
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

CREATE TRIGGER run_status_moves BEFORE UPDATE OF status ON run
WHEN old.status <> new.status AND old.status || '>' || new.status NOT IN ('queued>running', 'queued>canceled', 'queued>lost', 'running>succeeded', 'running>failed', 'running>exceeded', 'running>canceled', 'running>queued', 'running>lost')
BEGIN SELECT RAISE(ABORT, 'run.status: no such move'); END;

CREATE TRIGGER run_attempt_rises BEFORE UPDATE OF attempt ON run
WHEN new.attempt < old.attempt
BEGIN SELECT RAISE(ABORT, 'run.attempt never falls'); END;

CREATE TABLE webhook (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT, 
	url TEXT NOT NULL, 
	events JSON NOT NULL, 
	secret BLOB NOT NULL, 
	old_secret BLOB, 
	old_until VARCHAR, 
	enabled BOOLEAN NOT NULL, 
	disabled_reason TEXT, 
	failures INTEGER NOT NULL, 
	failing_since VARCHAR, 
	created_at VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	CONSTRAINT pk_webhook PRIMARY KEY (id), 
	CONSTRAINT uq_webhook_public_id UNIQUE (public_id), 
	CONSTRAINT fk_webhook_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_webhook_project_id FOREIGN KEY(project_id) REFERENCES project (id)
);

CREATE INDEX webhook_of_tenant ON webhook (tenant_id, id DESC);

CREATE TABLE outbox (
	id INTEGER NOT NULL, 
	event_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	body JSON NOT NULL, 
	created_at VARCHAR NOT NULL, 
	planned_at VARCHAR, 
	CONSTRAINT pk_outbox PRIMARY KEY (id), 
	CONSTRAINT uq_outbox_event_id UNIQUE (event_id), 
	CONSTRAINT fk_outbox_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_outbox_project_id FOREIGN KEY(project_id) REFERENCES project (id)
);

CREATE INDEX outbox_age ON outbox (created_at);

CREATE INDEX outbox_unplanned ON outbox (id) WHERE planned_at is null;

CREATE TABLE audit_item (
	audit_id BIGINT NOT NULL, 
	n INTEGER NOT NULL, 
	custom_id TEXT, 
	run_id BIGINT, 
	problem JSON, 
	ended BOOLEAN NOT NULL, 
	CONSTRAINT pk_audit_item PRIMARY KEY (audit_id, n), 
	CONSTRAINT uq_audit_item_audit_id_custom_id UNIQUE (audit_id, custom_id), 
	CONSTRAINT fk_audit_item_audit_id FOREIGN KEY(audit_id) REFERENCES audit (id), 
	CONSTRAINT fk_audit_item_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE INDEX audit_item_run ON audit_item (run_id);

CREATE INDEX audit_item_open ON audit_item (audit_id) WHERE not ended;

CREATE TABLE audit_verdict (
	audit_id BIGINT NOT NULL, 
	ruleset TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	counts JSON NOT NULL, 
	judged_at VARCHAR NOT NULL, 
	CONSTRAINT pk_audit_verdict PRIMARY KEY (audit_id, ruleset), 
	CONSTRAINT ck_audit_verdict_verdict CHECK (verdict in ('passed', 'failed')), 
	CONSTRAINT fk_audit_verdict_audit_id FOREIGN KEY(audit_id) REFERENCES audit (id)
);

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

CREATE TABLE finding (
	id INTEGER NOT NULL, 
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
	location JSON NOT NULL, 
	related JSON NOT NULL, 
	stacks JSON NOT NULL, 
	evidence JSON NOT NULL, 
	fixes JSON NOT NULL, 
	consequences JSON NOT NULL, 
	suppressed JSON, 
	tensor INTEGER, 
	call INTEGER, 
	moment INTEGER, 
	count INTEGER NOT NULL, 
	first_step INTEGER, 
	last_step INTEGER, 
	created_at VARCHAR NOT NULL, 
	gone_at VARCHAR, 
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

CREATE TABLE finding_group (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	tenant_id BIGINT NOT NULL, 
	project_id BIGINT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	rule TEXT NOT NULL, 
	level TEXT NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT, 
	state_by TEXT, 
	state_at VARCHAR, 
	owner TEXT, 
	first_run_id BIGINT NOT NULL, 
	last_run_id BIGINT NOT NULL, 
	first_seen_at VARCHAR NOT NULL, 
	last_seen_at VARCHAR NOT NULL, 
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

CREATE TABLE idempotency (
	tenant_id BIGINT NOT NULL, 
	"key" TEXT NOT NULL, 
	request_hash BLOB NOT NULL, 
	state TEXT NOT NULL, 
	run_id BIGINT, 
	status SMALLINT, 
	headers JSON, 
	body BLOB, 
	created_at VARCHAR NOT NULL, 
	expires_at VARCHAR NOT NULL, 
	CONSTRAINT pk_idempotency PRIMARY KEY (tenant_id, "key"), 
	CONSTRAINT ck_idempotency_state CHECK (state in ('in-flight', 'done')), 
	CONSTRAINT ck_idempotency_answered CHECK ((state = 'done') = (status is not null)), 
	CONSTRAINT fk_idempotency_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id), 
	CONSTRAINT fk_idempotency_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE INDEX idempotency_expires ON idempotency (expires_at);

CREATE TABLE recorder (
	run_id BIGINT NOT NULL, 
	asked BLOB NOT NULL, 
	environment JSON NOT NULL, 
	next_frame INTEGER NOT NULL, 
	rows BIGINT NOT NULL, 
	last TEXT, 
	told JSON, 
	CONSTRAINT pk_recorder PRIMARY KEY (run_id), 
	CONSTRAINT fk_recorder_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE TABLE frame (
	run_id BIGINT NOT NULL, 
	n INTEGER NOT NULL, 
	sha256 BLOB NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	at VARCHAR NOT NULL, 
	body BLOB, 
	CONSTRAINT pk_frame PRIMARY KEY (run_id, n), 
	CONSTRAINT fk_frame_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE INDEX frame_kept ON frame (run_id) WHERE body is not null;

CREATE INDEX frame_at ON frame (at);

CREATE TABLE run_attempt (
	run_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	worker TEXT NOT NULL, 
	started_at VARCHAR NOT NULL, 
	ended_at VARCHAR, 
	outcome TEXT, 
	detail JSON, 
	isolation JSON, 
	CONSTRAINT pk_run_attempt PRIMARY KEY (run_id, attempt), 
	CONSTRAINT fk_run_attempt_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);

CREATE INDEX run_attempt_ended ON run_attempt (ended_at) WHERE ended_at is not null;

CREATE TABLE delivery (
	id INTEGER NOT NULL, 
	public_id TEXT NOT NULL, 
	outbox_id BIGINT NOT NULL, 
	webhook_id BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	attempts SMALLINT NOT NULL, 
	next_at VARCHAR NOT NULL, 
	lease_until VARCHAR, 
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

CREATE TABLE delivery_try (
	delivery_id BIGINT NOT NULL, 
	n SMALLINT NOT NULL, 
	at VARCHAR NOT NULL, 
	address TEXT NOT NULL, 
	status SMALLINT, 
	ms INTEGER NOT NULL, 
	error TEXT, 
	answer TEXT, 
	CONSTRAINT pk_delivery_try PRIMARY KEY (delivery_id, n), 
	CONSTRAINT fk_delivery_try_delivery_id FOREIGN KEY(delivery_id) REFERENCES delivery (id)
);

CREATE INDEX delivery_try_at ON delivery_try (at);

CREATE VIEW snapshot AS SELECT run,
part,
run_id,
tensor,
CASE WHEN moment_step <> 0 THEN first_moment + moment_step * i ELSE CASE WHEN x_moments = '' THEN 0 ELSE ((((instr('123456789ABCDEF', substr(x_moments, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_moments, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_moments, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_moments, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_moments, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_moments, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_moments, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_moments, 8, 1))) << 24)) - ((((instr('123456789ABCDEF', substr(x_moments, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_moments, 8, 1)))) >> 7) << 32)) END END AS moment,
(flags & 1) <> 0 AS is_leaf,
(flags & 2) <> 0 AS requires_grad,
(flags & 4) <> 0 AS retains_grad,
json_extract(grad_fns, '$[' || (nullif(CASE WHEN x_grad_fn = '' THEN 0 ELSE ((((instr('123456789ABCDEF', substr(x_grad_fn, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_fn, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_grad_fn, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_fn, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_grad_fn, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_fn, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_grad_fn, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_fn, 8, 1))) << 24)) - ((((instr('123456789ABCDEF', substr(x_grad_fn, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_fn, 8, 1)))) >> 7) << 32)) END, 0) - 1) || ']') AS grad_fn,
CASE WHEN (flags & 16) <> 0 THEN 'none' WHEN (flags & 32) <> 0 THEN 'not-read' ELSE 'present' END AS grad,
nullif(CASE WHEN x_version = '' THEN 0 ELSE ((((instr('123456789ABCDEF', substr(x_version, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_version, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_version, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_version, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_version, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_version, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_version, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_version, 8, 1))) << 24)) - ((((instr('123456789ABCDEF', substr(x_version, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_version, 8, 1)))) >> 7) << 32)) END + version_step * i, -1) AS version,
nullif(CASE WHEN x_grad_id = '' THEN -1 ELSE ((((instr('123456789ABCDEF', substr(x_grad_id, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_id, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_grad_id, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_id, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_grad_id, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_id, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_grad_id, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_id, 8, 1))) << 24)) - ((((instr('123456789ABCDEF', substr(x_grad_id, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_id, 8, 1)))) >> 7) << 32)) END, -1) AS grad_id,
nullif(CASE WHEN x_grad_version = '' THEN -1 ELSE ((((instr('123456789ABCDEF', substr(x_grad_version, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_version, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_grad_version, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_version, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_grad_version, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_version, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_grad_version, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_version, 8, 1))) << 24)) - ((((instr('123456789ABCDEF', substr(x_grad_version, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_version, 8, 1)))) >> 7) << 32)) END, -1) AS grad_version,
CASE WHEN (flags & 256) <> 0 THEN CASE WHEN x_value_norm IN ('', '0100C07F') THEN NULL WHEN x_value_norm = '00000000' THEN 0.0 WHEN x_value_norm = '0000807F' THEN 9e999 WHEN x_value_norm = '000080FF' THEN -9e999 WHEN (instr('123456789ABCDEF', substr(x_value_norm, 7, 1)) & 7) = 7 AND instr('123456789ABCDEF', substr(x_value_norm, 8, 1)) = 15 AND instr('123456789ABCDEF', substr(x_value_norm, 5, 1)) > 7 THEN 'NaN' ELSE (1 - 2 * (instr('123456789ABCDEF', substr(x_value_norm, 7, 1)) >> 3)) * CASE WHEN (instr('123456789ABCDEF', substr(x_value_norm, 7, 1)) & 7) = 0 AND instr('123456789ABCDEF', substr(x_value_norm, 8, 1)) = 0 AND instr('123456789ABCDEF', substr(x_value_norm, 5, 1)) < 8 THEN 2 * (((instr('123456789ABCDEF', substr(x_value_norm, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_value_norm, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_value_norm, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_norm, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_value_norm, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_norm, 2, 1)))) ELSE (((instr('123456789ABCDEF', substr(x_value_norm, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_value_norm, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_value_norm, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_norm, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_value_norm, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_norm, 2, 1)))) + 8388608 END * CASE instr('123456789ABCDEF', substr(x_value_norm, 7, 1)) & 7 WHEN 0 THEN 1.0 WHEN 1 THEN 4294967296.0 WHEN 2 THEN 1.8446744073709552e+19 WHEN 3 THEN 7.922816251426434e+28 WHEN 4 THEN 3.402823669209385e+38 WHEN 5 THEN 1.461501637330903e+48 WHEN 6 THEN 6.277101735386681e+57 WHEN 7 THEN 2.695994666715064e+67 END * (1 << (2 * instr('123456789ABCDEF', substr(x_value_norm, 8, 1)))) * (1 << (instr('123456789ABCDEF', substr(x_value_norm, 5, 1)) >> 3)) * 7.006492321624085e-46 END END AS value_norm,
CASE WHEN (flags & 256) <> 0 THEN CASE WHEN x_value_sum IN ('', '0100C07F') THEN NULL WHEN x_value_sum = '00000000' THEN 0.0 WHEN x_value_sum = '0000807F' THEN 9e999 WHEN x_value_sum = '000080FF' THEN -9e999 WHEN (instr('123456789ABCDEF', substr(x_value_sum, 7, 1)) & 7) = 7 AND instr('123456789ABCDEF', substr(x_value_sum, 8, 1)) = 15 AND instr('123456789ABCDEF', substr(x_value_sum, 5, 1)) > 7 THEN 'NaN' ELSE (1 - 2 * (instr('123456789ABCDEF', substr(x_value_sum, 7, 1)) >> 3)) * CASE WHEN (instr('123456789ABCDEF', substr(x_value_sum, 7, 1)) & 7) = 0 AND instr('123456789ABCDEF', substr(x_value_sum, 8, 1)) = 0 AND instr('123456789ABCDEF', substr(x_value_sum, 5, 1)) < 8 THEN 2 * (((instr('123456789ABCDEF', substr(x_value_sum, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_value_sum, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_value_sum, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_sum, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_value_sum, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_sum, 2, 1)))) ELSE (((instr('123456789ABCDEF', substr(x_value_sum, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_value_sum, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_value_sum, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_sum, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_value_sum, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_sum, 2, 1)))) + 8388608 END * CASE instr('123456789ABCDEF', substr(x_value_sum, 7, 1)) & 7 WHEN 0 THEN 1.0 WHEN 1 THEN 4294967296.0 WHEN 2 THEN 1.8446744073709552e+19 WHEN 3 THEN 7.922816251426434e+28 WHEN 4 THEN 3.402823669209385e+38 WHEN 5 THEN 1.461501637330903e+48 WHEN 6 THEN 6.277101735386681e+57 WHEN 7 THEN 2.695994666715064e+67 END * (1 << (2 * instr('123456789ABCDEF', substr(x_value_sum, 8, 1)))) * (1 << (instr('123456789ABCDEF', substr(x_value_sum, 5, 1)) >> 3)) * 7.006492321624085e-46 END END AS value_sum,
CASE WHEN (flags & 256) <> 0 THEN CASE WHEN x_value_min IN ('', '0100C07F') THEN NULL WHEN x_value_min = '00000000' THEN 0.0 WHEN x_value_min = '0000807F' THEN 9e999 WHEN x_value_min = '000080FF' THEN -9e999 WHEN (instr('123456789ABCDEF', substr(x_value_min, 7, 1)) & 7) = 7 AND instr('123456789ABCDEF', substr(x_value_min, 8, 1)) = 15 AND instr('123456789ABCDEF', substr(x_value_min, 5, 1)) > 7 THEN 'NaN' ELSE (1 - 2 * (instr('123456789ABCDEF', substr(x_value_min, 7, 1)) >> 3)) * CASE WHEN (instr('123456789ABCDEF', substr(x_value_min, 7, 1)) & 7) = 0 AND instr('123456789ABCDEF', substr(x_value_min, 8, 1)) = 0 AND instr('123456789ABCDEF', substr(x_value_min, 5, 1)) < 8 THEN 2 * (((instr('123456789ABCDEF', substr(x_value_min, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_value_min, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_value_min, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_min, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_value_min, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_min, 2, 1)))) ELSE (((instr('123456789ABCDEF', substr(x_value_min, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_value_min, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_value_min, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_min, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_value_min, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_min, 2, 1)))) + 8388608 END * CASE instr('123456789ABCDEF', substr(x_value_min, 7, 1)) & 7 WHEN 0 THEN 1.0 WHEN 1 THEN 4294967296.0 WHEN 2 THEN 1.8446744073709552e+19 WHEN 3 THEN 7.922816251426434e+28 WHEN 4 THEN 3.402823669209385e+38 WHEN 5 THEN 1.461501637330903e+48 WHEN 6 THEN 6.277101735386681e+57 WHEN 7 THEN 2.695994666715064e+67 END * (1 << (2 * instr('123456789ABCDEF', substr(x_value_min, 8, 1)))) * (1 << (instr('123456789ABCDEF', substr(x_value_min, 5, 1)) >> 3)) * 7.006492321624085e-46 END END AS value_min,
CASE WHEN (flags & 256) <> 0 THEN CASE WHEN x_value_max IN ('', '0100C07F') THEN NULL WHEN x_value_max = '00000000' THEN 0.0 WHEN x_value_max = '0000807F' THEN 9e999 WHEN x_value_max = '000080FF' THEN -9e999 WHEN (instr('123456789ABCDEF', substr(x_value_max, 7, 1)) & 7) = 7 AND instr('123456789ABCDEF', substr(x_value_max, 8, 1)) = 15 AND instr('123456789ABCDEF', substr(x_value_max, 5, 1)) > 7 THEN 'NaN' ELSE (1 - 2 * (instr('123456789ABCDEF', substr(x_value_max, 7, 1)) >> 3)) * CASE WHEN (instr('123456789ABCDEF', substr(x_value_max, 7, 1)) & 7) = 0 AND instr('123456789ABCDEF', substr(x_value_max, 8, 1)) = 0 AND instr('123456789ABCDEF', substr(x_value_max, 5, 1)) < 8 THEN 2 * (((instr('123456789ABCDEF', substr(x_value_max, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_value_max, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_value_max, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_max, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_value_max, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_max, 2, 1)))) ELSE (((instr('123456789ABCDEF', substr(x_value_max, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_value_max, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_value_max, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_max, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_value_max, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_max, 2, 1)))) + 8388608 END * CASE instr('123456789ABCDEF', substr(x_value_max, 7, 1)) & 7 WHEN 0 THEN 1.0 WHEN 1 THEN 4294967296.0 WHEN 2 THEN 1.8446744073709552e+19 WHEN 3 THEN 7.922816251426434e+28 WHEN 4 THEN 3.402823669209385e+38 WHEN 5 THEN 1.461501637330903e+48 WHEN 6 THEN 6.277101735386681e+57 WHEN 7 THEN 2.695994666715064e+67 END * (1 << (2 * instr('123456789ABCDEF', substr(x_value_max, 8, 1)))) * (1 << (instr('123456789ABCDEF', substr(x_value_max, 5, 1)) >> 3)) * 7.006492321624085e-46 END END AS value_max,
CASE WHEN (flags & 256) <> 0 THEN CASE WHEN x_value_nan = '' THEN 0 ELSE (((instr('123456789ABCDEF', substr(x_value_nan, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_nan, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_value_nan, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_nan, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_value_nan, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_nan, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_value_nan, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_nan, 8, 1))) << 24) + ((instr('123456789ABCDEF', substr(x_value_nan, 9, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_nan, 10, 1))) << 32) + ((instr('123456789ABCDEF', substr(x_value_nan, 11, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_nan, 12, 1))) << 40) + ((instr('123456789ABCDEF', substr(x_value_nan, 13, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_nan, 14, 1))) << 48) + ((instr('123456789ABCDEF', substr(x_value_nan, 15, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_nan, 16, 1))) << 56)) END END AS value_nan,
CASE WHEN (flags & 256) <> 0 THEN CASE WHEN x_value_inf = '' THEN 0 ELSE (((instr('123456789ABCDEF', substr(x_value_inf, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_inf, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_value_inf, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_inf, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_value_inf, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_inf, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_value_inf, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_inf, 8, 1))) << 24) + ((instr('123456789ABCDEF', substr(x_value_inf, 9, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_inf, 10, 1))) << 32) + ((instr('123456789ABCDEF', substr(x_value_inf, 11, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_inf, 12, 1))) << 40) + ((instr('123456789ABCDEF', substr(x_value_inf, 13, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_inf, 14, 1))) << 48) + ((instr('123456789ABCDEF', substr(x_value_inf, 15, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_inf, 16, 1))) << 56)) END END AS value_inf,
CASE WHEN (flags & 256) <> 0 THEN CASE WHEN x_value_zeros = '' THEN 0 ELSE (((instr('123456789ABCDEF', substr(x_value_zeros, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_zeros, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_value_zeros, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_zeros, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_value_zeros, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_zeros, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_value_zeros, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_zeros, 8, 1))) << 24) + ((instr('123456789ABCDEF', substr(x_value_zeros, 9, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_zeros, 10, 1))) << 32) + ((instr('123456789ABCDEF', substr(x_value_zeros, 11, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_zeros, 12, 1))) << 40) + ((instr('123456789ABCDEF', substr(x_value_zeros, 13, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_zeros, 14, 1))) << 48) + ((instr('123456789ABCDEF', substr(x_value_zeros, 15, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_zeros, 16, 1))) << 56)) END END AS value_zeros,
CASE WHEN (flags & 256) <> 0 THEN CASE WHEN x_value_counted = '' THEN 0 ELSE (((instr('123456789ABCDEF', substr(x_value_counted, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_counted, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_value_counted, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_counted, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_value_counted, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_counted, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_value_counted, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_counted, 8, 1))) << 24) + ((instr('123456789ABCDEF', substr(x_value_counted, 9, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_counted, 10, 1))) << 32) + ((instr('123456789ABCDEF', substr(x_value_counted, 11, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_counted, 12, 1))) << 40) + ((instr('123456789ABCDEF', substr(x_value_counted, 13, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_counted, 14, 1))) << 48) + ((instr('123456789ABCDEF', substr(x_value_counted, 15, 1)) * 16 + instr('123456789ABCDEF', substr(x_value_counted, 16, 1))) << 56)) END END AS value_counted,
CASE WHEN (flags & 512) <> 0 THEN CASE WHEN x_grad_norm IN ('', '0100C07F') THEN NULL WHEN x_grad_norm = '00000000' THEN 0.0 WHEN x_grad_norm = '0000807F' THEN 9e999 WHEN x_grad_norm = '000080FF' THEN -9e999 WHEN (instr('123456789ABCDEF', substr(x_grad_norm, 7, 1)) & 7) = 7 AND instr('123456789ABCDEF', substr(x_grad_norm, 8, 1)) = 15 AND instr('123456789ABCDEF', substr(x_grad_norm, 5, 1)) > 7 THEN 'NaN' ELSE (1 - 2 * (instr('123456789ABCDEF', substr(x_grad_norm, 7, 1)) >> 3)) * CASE WHEN (instr('123456789ABCDEF', substr(x_grad_norm, 7, 1)) & 7) = 0 AND instr('123456789ABCDEF', substr(x_grad_norm, 8, 1)) = 0 AND instr('123456789ABCDEF', substr(x_grad_norm, 5, 1)) < 8 THEN 2 * (((instr('123456789ABCDEF', substr(x_grad_norm, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_grad_norm, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_grad_norm, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_norm, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_grad_norm, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_norm, 2, 1)))) ELSE (((instr('123456789ABCDEF', substr(x_grad_norm, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_grad_norm, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_grad_norm, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_norm, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_grad_norm, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_norm, 2, 1)))) + 8388608 END * CASE instr('123456789ABCDEF', substr(x_grad_norm, 7, 1)) & 7 WHEN 0 THEN 1.0 WHEN 1 THEN 4294967296.0 WHEN 2 THEN 1.8446744073709552e+19 WHEN 3 THEN 7.922816251426434e+28 WHEN 4 THEN 3.402823669209385e+38 WHEN 5 THEN 1.461501637330903e+48 WHEN 6 THEN 6.277101735386681e+57 WHEN 7 THEN 2.695994666715064e+67 END * (1 << (2 * instr('123456789ABCDEF', substr(x_grad_norm, 8, 1)))) * (1 << (instr('123456789ABCDEF', substr(x_grad_norm, 5, 1)) >> 3)) * 7.006492321624085e-46 END END AS grad_norm,
CASE WHEN (flags & 512) <> 0 THEN CASE WHEN x_grad_sum IN ('', '0100C07F') THEN NULL WHEN x_grad_sum = '00000000' THEN 0.0 WHEN x_grad_sum = '0000807F' THEN 9e999 WHEN x_grad_sum = '000080FF' THEN -9e999 WHEN (instr('123456789ABCDEF', substr(x_grad_sum, 7, 1)) & 7) = 7 AND instr('123456789ABCDEF', substr(x_grad_sum, 8, 1)) = 15 AND instr('123456789ABCDEF', substr(x_grad_sum, 5, 1)) > 7 THEN 'NaN' ELSE (1 - 2 * (instr('123456789ABCDEF', substr(x_grad_sum, 7, 1)) >> 3)) * CASE WHEN (instr('123456789ABCDEF', substr(x_grad_sum, 7, 1)) & 7) = 0 AND instr('123456789ABCDEF', substr(x_grad_sum, 8, 1)) = 0 AND instr('123456789ABCDEF', substr(x_grad_sum, 5, 1)) < 8 THEN 2 * (((instr('123456789ABCDEF', substr(x_grad_sum, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_grad_sum, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_grad_sum, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_sum, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_grad_sum, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_sum, 2, 1)))) ELSE (((instr('123456789ABCDEF', substr(x_grad_sum, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_grad_sum, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_grad_sum, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_sum, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_grad_sum, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_sum, 2, 1)))) + 8388608 END * CASE instr('123456789ABCDEF', substr(x_grad_sum, 7, 1)) & 7 WHEN 0 THEN 1.0 WHEN 1 THEN 4294967296.0 WHEN 2 THEN 1.8446744073709552e+19 WHEN 3 THEN 7.922816251426434e+28 WHEN 4 THEN 3.402823669209385e+38 WHEN 5 THEN 1.461501637330903e+48 WHEN 6 THEN 6.277101735386681e+57 WHEN 7 THEN 2.695994666715064e+67 END * (1 << (2 * instr('123456789ABCDEF', substr(x_grad_sum, 8, 1)))) * (1 << (instr('123456789ABCDEF', substr(x_grad_sum, 5, 1)) >> 3)) * 7.006492321624085e-46 END END AS grad_sum,
CASE WHEN (flags & 512) <> 0 THEN CASE WHEN x_grad_min IN ('', '0100C07F') THEN NULL WHEN x_grad_min = '00000000' THEN 0.0 WHEN x_grad_min = '0000807F' THEN 9e999 WHEN x_grad_min = '000080FF' THEN -9e999 WHEN (instr('123456789ABCDEF', substr(x_grad_min, 7, 1)) & 7) = 7 AND instr('123456789ABCDEF', substr(x_grad_min, 8, 1)) = 15 AND instr('123456789ABCDEF', substr(x_grad_min, 5, 1)) > 7 THEN 'NaN' ELSE (1 - 2 * (instr('123456789ABCDEF', substr(x_grad_min, 7, 1)) >> 3)) * CASE WHEN (instr('123456789ABCDEF', substr(x_grad_min, 7, 1)) & 7) = 0 AND instr('123456789ABCDEF', substr(x_grad_min, 8, 1)) = 0 AND instr('123456789ABCDEF', substr(x_grad_min, 5, 1)) < 8 THEN 2 * (((instr('123456789ABCDEF', substr(x_grad_min, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_grad_min, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_grad_min, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_min, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_grad_min, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_min, 2, 1)))) ELSE (((instr('123456789ABCDEF', substr(x_grad_min, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_grad_min, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_grad_min, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_min, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_grad_min, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_min, 2, 1)))) + 8388608 END * CASE instr('123456789ABCDEF', substr(x_grad_min, 7, 1)) & 7 WHEN 0 THEN 1.0 WHEN 1 THEN 4294967296.0 WHEN 2 THEN 1.8446744073709552e+19 WHEN 3 THEN 7.922816251426434e+28 WHEN 4 THEN 3.402823669209385e+38 WHEN 5 THEN 1.461501637330903e+48 WHEN 6 THEN 6.277101735386681e+57 WHEN 7 THEN 2.695994666715064e+67 END * (1 << (2 * instr('123456789ABCDEF', substr(x_grad_min, 8, 1)))) * (1 << (instr('123456789ABCDEF', substr(x_grad_min, 5, 1)) >> 3)) * 7.006492321624085e-46 END END AS grad_min,
CASE WHEN (flags & 512) <> 0 THEN CASE WHEN x_grad_max IN ('', '0100C07F') THEN NULL WHEN x_grad_max = '00000000' THEN 0.0 WHEN x_grad_max = '0000807F' THEN 9e999 WHEN x_grad_max = '000080FF' THEN -9e999 WHEN (instr('123456789ABCDEF', substr(x_grad_max, 7, 1)) & 7) = 7 AND instr('123456789ABCDEF', substr(x_grad_max, 8, 1)) = 15 AND instr('123456789ABCDEF', substr(x_grad_max, 5, 1)) > 7 THEN 'NaN' ELSE (1 - 2 * (instr('123456789ABCDEF', substr(x_grad_max, 7, 1)) >> 3)) * CASE WHEN (instr('123456789ABCDEF', substr(x_grad_max, 7, 1)) & 7) = 0 AND instr('123456789ABCDEF', substr(x_grad_max, 8, 1)) = 0 AND instr('123456789ABCDEF', substr(x_grad_max, 5, 1)) < 8 THEN 2 * (((instr('123456789ABCDEF', substr(x_grad_max, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_grad_max, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_grad_max, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_max, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_grad_max, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_max, 2, 1)))) ELSE (((instr('123456789ABCDEF', substr(x_grad_max, 5, 1)) & 7) * 16 + instr('123456789ABCDEF', substr(x_grad_max, 6, 1))) * 65536 + (instr('123456789ABCDEF', substr(x_grad_max, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_max, 4, 1))) * 256 + (instr('123456789ABCDEF', substr(x_grad_max, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_max, 2, 1)))) + 8388608 END * CASE instr('123456789ABCDEF', substr(x_grad_max, 7, 1)) & 7 WHEN 0 THEN 1.0 WHEN 1 THEN 4294967296.0 WHEN 2 THEN 1.8446744073709552e+19 WHEN 3 THEN 7.922816251426434e+28 WHEN 4 THEN 3.402823669209385e+38 WHEN 5 THEN 1.461501637330903e+48 WHEN 6 THEN 6.277101735386681e+57 WHEN 7 THEN 2.695994666715064e+67 END * (1 << (2 * instr('123456789ABCDEF', substr(x_grad_max, 8, 1)))) * (1 << (instr('123456789ABCDEF', substr(x_grad_max, 5, 1)) >> 3)) * 7.006492321624085e-46 END END AS grad_max,
CASE WHEN (flags & 512) <> 0 THEN CASE WHEN x_grad_nan = '' THEN 0 ELSE (((instr('123456789ABCDEF', substr(x_grad_nan, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_nan, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_grad_nan, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_nan, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_grad_nan, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_nan, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_grad_nan, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_nan, 8, 1))) << 24) + ((instr('123456789ABCDEF', substr(x_grad_nan, 9, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_nan, 10, 1))) << 32) + ((instr('123456789ABCDEF', substr(x_grad_nan, 11, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_nan, 12, 1))) << 40) + ((instr('123456789ABCDEF', substr(x_grad_nan, 13, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_nan, 14, 1))) << 48) + ((instr('123456789ABCDEF', substr(x_grad_nan, 15, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_nan, 16, 1))) << 56)) END END AS grad_nan,
CASE WHEN (flags & 512) <> 0 THEN CASE WHEN x_grad_inf = '' THEN 0 ELSE (((instr('123456789ABCDEF', substr(x_grad_inf, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_inf, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_grad_inf, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_inf, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_grad_inf, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_inf, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_grad_inf, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_inf, 8, 1))) << 24) + ((instr('123456789ABCDEF', substr(x_grad_inf, 9, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_inf, 10, 1))) << 32) + ((instr('123456789ABCDEF', substr(x_grad_inf, 11, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_inf, 12, 1))) << 40) + ((instr('123456789ABCDEF', substr(x_grad_inf, 13, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_inf, 14, 1))) << 48) + ((instr('123456789ABCDEF', substr(x_grad_inf, 15, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_inf, 16, 1))) << 56)) END END AS grad_inf,
CASE WHEN (flags & 512) <> 0 THEN CASE WHEN x_grad_zeros = '' THEN 0 ELSE (((instr('123456789ABCDEF', substr(x_grad_zeros, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_zeros, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_grad_zeros, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_zeros, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_grad_zeros, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_zeros, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_grad_zeros, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_zeros, 8, 1))) << 24) + ((instr('123456789ABCDEF', substr(x_grad_zeros, 9, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_zeros, 10, 1))) << 32) + ((instr('123456789ABCDEF', substr(x_grad_zeros, 11, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_zeros, 12, 1))) << 40) + ((instr('123456789ABCDEF', substr(x_grad_zeros, 13, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_zeros, 14, 1))) << 48) + ((instr('123456789ABCDEF', substr(x_grad_zeros, 15, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_zeros, 16, 1))) << 56)) END END AS grad_zeros,
CASE WHEN (flags & 512) <> 0 THEN CASE WHEN x_grad_counted = '' THEN 0 ELSE (((instr('123456789ABCDEF', substr(x_grad_counted, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_counted, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_grad_counted, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_counted, 4, 1))) << 8) + ((instr('123456789ABCDEF', substr(x_grad_counted, 5, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_counted, 6, 1))) << 16) + ((instr('123456789ABCDEF', substr(x_grad_counted, 7, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_counted, 8, 1))) << 24) + ((instr('123456789ABCDEF', substr(x_grad_counted, 9, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_counted, 10, 1))) << 32) + ((instr('123456789ABCDEF', substr(x_grad_counted, 11, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_counted, 12, 1))) << 40) + ((instr('123456789ABCDEF', substr(x_grad_counted, 13, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_counted, 14, 1))) << 48) + ((instr('123456789ABCDEF', substr(x_grad_counted, 15, 1)) * 16 + instr('123456789ABCDEF', substr(x_grad_counted, 16, 1))) << 56)) END END AS grad_counted
FROM (SELECT *, CASE WHEN x_flags = '' THEN 0 ELSE ((((instr('123456789ABCDEF', substr(x_flags, 1, 1)) * 16 + instr('123456789ABCDEF', substr(x_flags, 2, 1))) << 0) + ((instr('123456789ABCDEF', substr(x_flags, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_flags, 4, 1))) << 8)) - ((((instr('123456789ABCDEF', substr(x_flags, 3, 1)) * 16 + instr('123456789ABCDEF', substr(x_flags, 4, 1)))) >> 7) << 16)) END AS flags FROM
(SELECT r.public_id AS run, c.part, c.run_id, c.tensor, c.first_moment, c.moment_step, c.version_step, h.grad_fns, k.i, hex(substr(c.moments, 1 + CASE WHEN length(c.moments) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_moments, hex(substr(c.flags, 1 + CASE WHEN length(c.flags) = 2 THEN 0 ELSE 2 * k.i END, 2)) AS x_flags, hex(substr(c.grad_fn, 1 + CASE WHEN length(c.grad_fn) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_grad_fn, hex(substr(c.version, 1 + CASE WHEN length(c.version) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_version, hex(substr(c.grad_id, 1 + CASE WHEN length(c.grad_id) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_grad_id, hex(substr(c.grad_version, 1 + CASE WHEN length(c.grad_version) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_grad_version, hex(substr(c.value_norm, 1 + CASE WHEN length(c.value_norm) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_value_norm, hex(substr(c.value_sum, 1 + CASE WHEN length(c.value_sum) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_value_sum, hex(substr(c.value_min, 1 + CASE WHEN length(c.value_min) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_value_min, hex(substr(c.value_max, 1 + CASE WHEN length(c.value_max) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_value_max, hex(substr(c.value_nan, 1 + CASE WHEN length(c.value_nan) = 8 THEN 0 ELSE 8 * k.i END, 8)) AS x_value_nan, hex(substr(c.value_inf, 1 + CASE WHEN length(c.value_inf) = 8 THEN 0 ELSE 8 * k.i END, 8)) AS x_value_inf, hex(substr(c.value_zeros, 1 + CASE WHEN length(c.value_zeros) = 8 THEN 0 ELSE 8 * k.i END, 8)) AS x_value_zeros, hex(substr(c.value_counted, 1 + CASE WHEN length(c.value_counted) = 8 THEN 0 ELSE 8 * k.i END, 8)) AS x_value_counted, hex(substr(c.grad_norm, 1 + CASE WHEN length(c.grad_norm) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_grad_norm, hex(substr(c.grad_sum, 1 + CASE WHEN length(c.grad_sum) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_grad_sum, hex(substr(c.grad_min, 1 + CASE WHEN length(c.grad_min) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_grad_min, hex(substr(c.grad_max, 1 + CASE WHEN length(c.grad_max) = 4 THEN 0 ELSE 4 * k.i END, 4)) AS x_grad_max, hex(substr(c.grad_nan, 1 + CASE WHEN length(c.grad_nan) = 8 THEN 0 ELSE 8 * k.i END, 8)) AS x_grad_nan, hex(substr(c.grad_inf, 1 + CASE WHEN length(c.grad_inf) = 8 THEN 0 ELSE 8 * k.i END, 8)) AS x_grad_inf, hex(substr(c.grad_zeros, 1 + CASE WHEN length(c.grad_zeros) = 8 THEN 0 ELSE 8 * k.i END, 8)) AS x_grad_zeros, hex(substr(c.grad_counted, 1 + CASE WHEN length(c.grad_counted) = 8 THEN 0 ELSE 8 * k.i END, 8)) AS x_grad_counted
FROM run r CROSS JOIN snapshot_chunk c ON c.part = r.part AND c.run_id = r.id AND c.attempt = r.result_attempt
LEFT JOIN record h ON h.part = c.part AND h.run_id = c.run_id AND h.attempt = c.attempt
CROSS JOIN (WITH RECURSIVE counted(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM counted WHERE i < 479) SELECT i FROM counted) k ON k.i < c.n));

CREATE TRIGGER stored_snippet_programs_insert AFTER INSERT ON snippet
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'programs', 512 + coalesce(length(CAST(new.entry AS BLOB)), 0) WHERE 512 + coalesce(length(CAST(new.entry AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_snippet_programs_delete AFTER DELETE ON snippet
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT old.tenant_id, 'programs', -(512 + coalesce(length(CAST(old.entry AS BLOB)), 0)) WHERE -(512 + coalesce(length(CAST(old.entry AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_snippet_file_programs_insert AFTER INSERT ON snippet_file
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM snippet WHERE id = new.snippet_id), 'programs', 256 + coalesce(length(CAST(new.path AS BLOB)), 0) + coalesce(length(CAST(new.body AS BLOB)), 0) WHERE 256 + coalesce(length(CAST(new.path AS BLOB)), 0) + coalesce(length(CAST(new.body AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_snippet_file_programs_delete AFTER DELETE ON snippet_file
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM snippet WHERE id = old.snippet_id), 'programs', -(256 + coalesce(length(CAST(old.path AS BLOB)), 0) + coalesce(length(CAST(old.body AS BLOB)), 0)) WHERE -(256 + coalesce(length(CAST(old.path AS BLOB)), 0) + coalesce(length(CAST(old.body AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_run_runs_insert AFTER INSERT ON run
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'runs', 2048 + coalesce(length(CAST(new.labels AS BLOB)), 0) + coalesce(length(CAST(new.arguments AS BLOB)), 0) + coalesce(length(CAST(new.rules AS BLOB)), 0) + coalesce(length(CAST(new.custom_id AS BLOB)), 0) WHERE 2048 + coalesce(length(CAST(new.labels AS BLOB)), 0) + coalesce(length(CAST(new.arguments AS BLOB)), 0) + coalesce(length(CAST(new.rules AS BLOB)), 0) + coalesce(length(CAST(new.custom_id AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_run_runs_delete AFTER DELETE ON run
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT old.tenant_id, 'runs', -(2048 + coalesce(length(CAST(old.labels AS BLOB)), 0) + coalesce(length(CAST(old.arguments AS BLOB)), 0) + coalesce(length(CAST(old.rules AS BLOB)), 0) + coalesce(length(CAST(old.custom_id AS BLOB)), 0)) WHERE -(2048 + coalesce(length(CAST(old.labels AS BLOB)), 0) + coalesce(length(CAST(old.arguments AS BLOB)), 0) + coalesce(length(CAST(old.rules AS BLOB)), 0) + coalesce(length(CAST(old.custom_id AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_run_runs_update AFTER UPDATE OF labels ON run
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'runs', 2048 + coalesce(length(CAST(new.labels AS BLOB)), 0) + coalesce(length(CAST(new.arguments AS BLOB)), 0) + coalesce(length(CAST(new.rules AS BLOB)), 0) + coalesce(length(CAST(new.custom_id AS BLOB)), 0) - (2048 + coalesce(length(CAST(old.labels AS BLOB)), 0) + coalesce(length(CAST(old.arguments AS BLOB)), 0) + coalesce(length(CAST(old.rules AS BLOB)), 0) + coalesce(length(CAST(old.custom_id AS BLOB)), 0)) WHERE 2048 + coalesce(length(CAST(new.labels AS BLOB)), 0) + coalesce(length(CAST(new.arguments AS BLOB)), 0) + coalesce(length(CAST(new.rules AS BLOB)), 0) + coalesce(length(CAST(new.custom_id AS BLOB)), 0) - (2048 + coalesce(length(CAST(old.labels AS BLOB)), 0) + coalesce(length(CAST(old.arguments AS BLOB)), 0) + coalesce(length(CAST(old.rules AS BLOB)), 0) + coalesce(length(CAST(old.custom_id AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_run_records_insert AFTER INSERT ON run
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'records', CASE WHEN new.record_state = 'expired' THEN 0 ELSE new.record_bytes END WHERE CASE WHEN new.record_state = 'expired' THEN 0 ELSE new.record_bytes END <> 0; END;

CREATE TRIGGER stored_run_records_delete AFTER DELETE ON run
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT old.tenant_id, 'records', -(CASE WHEN old.record_state = 'expired' THEN 0 ELSE old.record_bytes END) WHERE -(CASE WHEN old.record_state = 'expired' THEN 0 ELSE old.record_bytes END) <> 0; END;

CREATE TRIGGER stored_run_records_update AFTER UPDATE OF record_bytes, record_state ON run
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'records', CASE WHEN new.record_state = 'expired' THEN 0 ELSE new.record_bytes END - (CASE WHEN old.record_state = 'expired' THEN 0 ELSE old.record_bytes END) WHERE CASE WHEN new.record_state = 'expired' THEN 0 ELSE new.record_bytes END - (CASE WHEN old.record_state = 'expired' THEN 0 ELSE old.record_bytes END) <> 0; END;

CREATE TRIGGER stored_recorder_runs_insert AFTER INSERT ON recorder
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM run WHERE id = new.run_id), 'runs', 256 + coalesce(length(CAST(new.environment AS BLOB)), 0) WHERE 256 + coalesce(length(CAST(new.environment AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_recorder_runs_delete AFTER DELETE ON recorder
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM run WHERE id = old.run_id), 'runs', -(256 + coalesce(length(CAST(old.environment AS BLOB)), 0)) WHERE -(256 + coalesce(length(CAST(old.environment AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_finding_findings_insert AFTER INSERT ON finding
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'findings', 512 + coalesce(length(CAST(new.message AS BLOB)), 0) + coalesce(length(CAST(new.location AS BLOB)), 0) + coalesce(length(CAST(new.related AS BLOB)), 0) + coalesce(length(CAST(new.stacks AS BLOB)), 0) + coalesce(length(CAST(new.evidence AS BLOB)), 0) + coalesce(length(CAST(new.fixes AS BLOB)), 0) + coalesce(length(CAST(new.consequences AS BLOB)), 0) WHERE 512 + coalesce(length(CAST(new.message AS BLOB)), 0) + coalesce(length(CAST(new.location AS BLOB)), 0) + coalesce(length(CAST(new.related AS BLOB)), 0) + coalesce(length(CAST(new.stacks AS BLOB)), 0) + coalesce(length(CAST(new.evidence AS BLOB)), 0) + coalesce(length(CAST(new.fixes AS BLOB)), 0) + coalesce(length(CAST(new.consequences AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_finding_findings_delete AFTER DELETE ON finding
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT old.tenant_id, 'findings', -(512 + coalesce(length(CAST(old.message AS BLOB)), 0) + coalesce(length(CAST(old.location AS BLOB)), 0) + coalesce(length(CAST(old.related AS BLOB)), 0) + coalesce(length(CAST(old.stacks AS BLOB)), 0) + coalesce(length(CAST(old.evidence AS BLOB)), 0) + coalesce(length(CAST(old.fixes AS BLOB)), 0) + coalesce(length(CAST(old.consequences AS BLOB)), 0)) WHERE -(512 + coalesce(length(CAST(old.message AS BLOB)), 0) + coalesce(length(CAST(old.location AS BLOB)), 0) + coalesce(length(CAST(old.related AS BLOB)), 0) + coalesce(length(CAST(old.stacks AS BLOB)), 0) + coalesce(length(CAST(old.evidence AS BLOB)), 0) + coalesce(length(CAST(old.fixes AS BLOB)), 0) + coalesce(length(CAST(old.consequences AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_policy_audits_insert AFTER INSERT ON policy
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'audits', 256 + coalesce(length(CAST(new.name AS BLOB)), 0) + coalesce(length(CAST(new.body AS BLOB)), 0) WHERE 256 + coalesce(length(CAST(new.name AS BLOB)), 0) + coalesce(length(CAST(new.body AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_policy_audits_delete AFTER DELETE ON policy
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT old.tenant_id, 'audits', -(256 + coalesce(length(CAST(old.name AS BLOB)), 0) + coalesce(length(CAST(old.body AS BLOB)), 0)) WHERE -(256 + coalesce(length(CAST(old.name AS BLOB)), 0) + coalesce(length(CAST(old.body AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_audit_audits_insert AFTER INSERT ON audit
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'audits', 512 + coalesce(length(CAST(new.name AS BLOB)), 0) + coalesce(length(CAST(new.labels AS BLOB)), 0) WHERE 512 + coalesce(length(CAST(new.name AS BLOB)), 0) + coalesce(length(CAST(new.labels AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_audit_audits_delete AFTER DELETE ON audit
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT old.tenant_id, 'audits', -(512 + coalesce(length(CAST(old.name AS BLOB)), 0) + coalesce(length(CAST(old.labels AS BLOB)), 0)) WHERE -(512 + coalesce(length(CAST(old.name AS BLOB)), 0) + coalesce(length(CAST(old.labels AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_audit_item_audits_insert AFTER INSERT ON audit_item
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM audit WHERE id = new.audit_id), 'audits', 128 + coalesce(length(CAST(new.custom_id AS BLOB)), 0) + coalesce(length(CAST(new.problem AS BLOB)), 0) WHERE 128 + coalesce(length(CAST(new.custom_id AS BLOB)), 0) + coalesce(length(CAST(new.problem AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_audit_item_audits_delete AFTER DELETE ON audit_item
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM audit WHERE id = old.audit_id), 'audits', -(128 + coalesce(length(CAST(old.custom_id AS BLOB)), 0) + coalesce(length(CAST(old.problem AS BLOB)), 0)) WHERE -(128 + coalesce(length(CAST(old.custom_id AS BLOB)), 0) + coalesce(length(CAST(old.problem AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_audit_verdict_audits_insert AFTER INSERT ON audit_verdict
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM audit WHERE id = new.audit_id), 'audits', 256 + coalesce(length(CAST(new.counts AS BLOB)), 0) WHERE 256 + coalesce(length(CAST(new.counts AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_audit_verdict_audits_delete AFTER DELETE ON audit_verdict
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM audit WHERE id = old.audit_id), 'audits', -(256 + coalesce(length(CAST(old.counts AS BLOB)), 0)) WHERE -(256 + coalesce(length(CAST(old.counts AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_audit_cell_audits_insert AFTER INSERT ON audit_cell
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM audit WHERE id = new.audit_id), 'audits', 128 + coalesce(length(CAST(new.rule AS BLOB)), 0) WHERE 128 + coalesce(length(CAST(new.rule AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_audit_cell_audits_delete AFTER DELETE ON audit_cell
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM audit WHERE id = old.audit_id), 'audits', -(128 + coalesce(length(CAST(old.rule AS BLOB)), 0)) WHERE -(128 + coalesce(length(CAST(old.rule AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_webhook_webhooks_insert AFTER INSERT ON webhook
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'webhooks', 1024 + coalesce(length(CAST(new.url AS BLOB)), 0) + coalesce(length(CAST(new.events AS BLOB)), 0) WHERE 1024 + coalesce(length(CAST(new.url AS BLOB)), 0) + coalesce(length(CAST(new.events AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_webhook_webhooks_delete AFTER DELETE ON webhook
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT old.tenant_id, 'webhooks', -(1024 + coalesce(length(CAST(old.url AS BLOB)), 0) + coalesce(length(CAST(old.events AS BLOB)), 0)) WHERE -(1024 + coalesce(length(CAST(old.url AS BLOB)), 0) + coalesce(length(CAST(old.events AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_webhook_webhooks_update AFTER UPDATE OF url, events ON webhook
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'webhooks', 1024 + coalesce(length(CAST(new.url AS BLOB)), 0) + coalesce(length(CAST(new.events AS BLOB)), 0) - (1024 + coalesce(length(CAST(old.url AS BLOB)), 0) + coalesce(length(CAST(old.events AS BLOB)), 0)) WHERE 1024 + coalesce(length(CAST(new.url AS BLOB)), 0) + coalesce(length(CAST(new.events AS BLOB)), 0) - (1024 + coalesce(length(CAST(old.url AS BLOB)), 0) + coalesce(length(CAST(old.events AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_delivery_webhooks_insert AFTER INSERT ON delivery
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM webhook WHERE id = new.webhook_id), 'webhooks', 256 WHERE 256 <> 0; END;

CREATE TRIGGER stored_delivery_webhooks_delete AFTER DELETE ON delivery
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT tenant_id FROM webhook WHERE id = old.webhook_id), 'webhooks', -(256) WHERE -(256) <> 0; END;

CREATE TRIGGER stored_delivery_try_webhooks_insert AFTER INSERT ON delivery_try
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT w.tenant_id FROM delivery d JOIN webhook w ON w.id = d.webhook_id WHERE d.id = new.delivery_id), 'webhooks', 128 + coalesce(length(CAST(new.address AS BLOB)), 0) + coalesce(length(CAST(new.error AS BLOB)), 0) + coalesce(length(CAST(new.answer AS BLOB)), 0) WHERE 128 + coalesce(length(CAST(new.address AS BLOB)), 0) + coalesce(length(CAST(new.error AS BLOB)), 0) + coalesce(length(CAST(new.answer AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_delivery_try_webhooks_delete AFTER DELETE ON delivery_try
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT (SELECT w.tenant_id FROM delivery d JOIN webhook w ON w.id = d.webhook_id WHERE d.id = old.delivery_id), 'webhooks', -(128 + coalesce(length(CAST(old.address AS BLOB)), 0) + coalesce(length(CAST(old.error AS BLOB)), 0) + coalesce(length(CAST(old.answer AS BLOB)), 0)) WHERE -(128 + coalesce(length(CAST(old.address AS BLOB)), 0) + coalesce(length(CAST(old.error AS BLOB)), 0) + coalesce(length(CAST(old.answer AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_project_projects_insert AFTER INSERT ON project
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'projects', 512 + coalesce(length(CAST(new.name AS BLOB)), 0) + coalesce(length(CAST(new.settings AS BLOB)), 0) WHERE 512 + coalesce(length(CAST(new.name AS BLOB)), 0) + coalesce(length(CAST(new.settings AS BLOB)), 0) <> 0; END;

CREATE TRIGGER stored_project_projects_delete AFTER DELETE ON project
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT old.tenant_id, 'projects', -(512 + coalesce(length(CAST(old.name AS BLOB)), 0) + coalesce(length(CAST(old.settings AS BLOB)), 0)) WHERE -(512 + coalesce(length(CAST(old.name AS BLOB)), 0) + coalesce(length(CAST(old.settings AS BLOB)), 0)) <> 0; END;

CREATE TRIGGER stored_project_projects_update AFTER UPDATE OF name, settings ON project
BEGIN INSERT INTO stored_bytes (tenant_id, kind, bytes)
SELECT new.tenant_id, 'projects', 512 + coalesce(length(CAST(new.name AS BLOB)), 0) + coalesce(length(CAST(new.settings AS BLOB)), 0) - (512 + coalesce(length(CAST(old.name AS BLOB)), 0) + coalesce(length(CAST(old.settings AS BLOB)), 0)) WHERE 512 + coalesce(length(CAST(new.name AS BLOB)), 0) + coalesce(length(CAST(new.settings AS BLOB)), 0) - (512 + coalesce(length(CAST(old.name AS BLOB)), 0) + coalesce(length(CAST(old.settings AS BLOB)), 0)) <> 0; END;
