CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE comparison (
	serial INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	job VARCHAR(32), 
	error TEXT, 
	target BIGINT NOT NULL, 
	golden BIGINT NOT NULL, 
	options TEXT NOT NULL, 
	mode TEXT, 
	verdict VARCHAR(8), 
	answer TEXT, 
	created DOUBLE NOT NULL, reference BIGINT, watched SMALLINT, growing TEXT, 
	CONSTRAINT pk_comparison PRIMARY KEY (serial), 
	CONSTRAINT uq_comparison_id UNIQUE (id)
);

CREATE INDEX ix_comparison_golden ON comparison (golden);

CREATE INDEX ix_comparison_target ON comparison (target);

CREATE TABLE dump (
	serial INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	path TEXT NOT NULL, 
	owned SMALLINT NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	job VARCHAR(32), 
	error TEXT, 
	framework TEXT, 
	task TEXT, 
	level TEXT, 
	summary TEXT, 
	steps TEXT NOT NULL, 
	ranks TEXT NOT NULL, 
	nodes INTEGER NOT NULL, 
	items INTEGER NOT NULL, 
	bytes BIGINT NOT NULL, 
	created DOUBLE NOT NULL, 
	problems TEXT NOT NULL, 
	CONSTRAINT pk_dump PRIMARY KEY (serial), 
	CONSTRAINT uq_dump_id UNIQUE (id)
);

CREATE TABLE entry (
	id INTEGER NOT NULL, 
	parent BIGINT NOT NULL, 
	seq INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	kind SMALLINT, 
	direction SMALLINT, 
	label BIGINT, 
	call INTEGER, 
	stack BIGINT, 
	micro INTEGER, 
	children INTEGER NOT NULL, 
	size INTEGER NOT NULL, 
	first_item INTEGER, 
	item_count INTEGER, 
	CONSTRAINT pk_entry PRIMARY KEY (id)
);

CREATE INDEX ix_entry_label_id ON entry (label, id);

CREATE INDEX ix_entry_name_id ON entry (name, id);

CREATE INDEX ix_entry_parent_seq ON entry (parent, seq);

CREATE TABLE item (
	id INTEGER NOT NULL, 
	node INTEGER NOT NULL, 
	role SMALLINT NOT NULL, 
	kind SMALLINT NOT NULL, 
	path BIGINT, 
	type BIGINT, 
	dtype BIGINT, 
	shape BIGINT, 
	max DOUBLE, 
	min DOUBLE, 
	mean DOUBLE, 
	norm DOUBLE, 
	states INTEGER NOT NULL, 
	requires_grad SMALLINT, 
	hash TEXT, 
	value BIGINT, 
	data_name BIGINT, 
	CONSTRAINT pk_item PRIMARY KEY (id)
);

CREATE TABLE item_error (
	id INTEGER NOT NULL, 
	message TEXT NOT NULL, said TEXT, 
	CONSTRAINT pk_item_error PRIMARY KEY (id)
);

CREATE TABLE item_pair (
	id INTEGER NOT NULL, 
	node INTEGER NOT NULL, 
	target INTEGER, 
	golden INTEGER, 
	outcome SMALLINT NOT NULL, 
	flags SMALLINT NOT NULL, 
	diff_max DOUBLE, 
	diff_min DOUBLE, 
	diff_mean DOUBLE, 
	diff_norm DOUBLE, 
	rel_max DOUBLE, 
	rel_min DOUBLE, 
	rel_mean DOUBLE, 
	rel_norm DOUBLE, 
	states INTEGER NOT NULL, 
	elements BIGINT, 
	verdict SMALLINT NOT NULL, 
	rule SMALLINT NOT NULL, 
	severity DOUBLE NOT NULL, 
	CONSTRAINT pk_item_pair PRIMARY KEY (id)
);

CREATE TABLE job (
	serial INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	subject VARCHAR(32) NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	payload TEXT NOT NULL, 
	progress DOUBLE NOT NULL, 
	message TEXT NOT NULL, 
	eta DOUBLE, 
	error TEXT, 
	cancel SMALLINT NOT NULL, 
	version BIGINT NOT NULL, 
	created DOUBLE NOT NULL, 
	started DOUBLE, 
	finished DOUBLE, said TEXT, 
	CONSTRAINT pk_job PRIMARY KEY (serial), 
	CONSTRAINT uq_job_id UNIQUE (id)
);

CREATE INDEX ix_job_status ON job (status);

CREATE TABLE node_pair (
	id INTEGER NOT NULL, 
	target INTEGER, 
	golden INTEGER, 
	method SMALLINT NOT NULL, 
	confidence DOUBLE NOT NULL, 
	name TEXT NOT NULL, 
	golden_name TEXT, 
	kind SMALLINT NOT NULL, 
	direction SMALLINT NOT NULL, 
	label BIGINT, 
	verdict SMALLINT NOT NULL, 
	cls SMALLINT NOT NULL, 
	in_score DOUBLE NOT NULL, 
	severity DOUBLE NOT NULL, 
	in_error DOUBLE, 
	out_error DOUBLE, 
	error_states SMALLINT NOT NULL, 
	entry INTEGER NOT NULL, 
	first_item INTEGER NOT NULL, 
	item_count INTEGER NOT NULL, 
	yes INTEGER NOT NULL, 
	na INTEGER NOT NULL, 
	warning INTEGER NOT NULL, 
	no INTEGER NOT NULL, leftover SMALLINT, beside INTEGER, target_distance DOUBLE, golden_distance DOUBLE, distance_measure SMALLINT, ratio DOUBLE DEFAULT '-1' NOT NULL, inverse DOUBLE, 
	CONSTRAINT pk_node_pair PRIMARY KEY (id)
);

CREATE INDEX ix_node_pair_cls_id ON node_pair (cls, id);

CREATE INDEX ix_node_pair_label_id ON node_pair (label, id);

CREATE INDEX ix_node_pair_name_id ON node_pair (name, id);

CREATE INDEX ix_node_pair_verdict_id ON node_pair (verdict, id);

CREATE TABLE place (
	id INTEGER NOT NULL, 
	parent BIGINT NOT NULL, 
	seq INTEGER NOT NULL, 
	pair INTEGER, 
	name TEXT, 
	children INTEGER NOT NULL, 
	yes INTEGER NOT NULL, 
	na INTEGER NOT NULL, 
	warning INTEGER NOT NULL, 
	no INTEGER NOT NULL, 
	origin INTEGER NOT NULL, 
	CONSTRAINT pk_place PRIMARY KEY (id)
);

CREATE INDEX ix_place_parent_seq ON place (parent, seq);

CREATE TABLE rank_dump (
	id INTEGER NOT NULL, 
	dump BIGINT NOT NULL, 
	step INTEGER NOT NULL, 
	rank INTEGER NOT NULL, 
	place TEXT NOT NULL, 
	header TEXT NOT NULL, 
	inferred SMALLINT NOT NULL, 
	nodes INTEGER NOT NULL, 
	entries INTEGER NOT NULL, 
	items INTEGER NOT NULL, 
	wide TEXT NOT NULL, 
	problems TEXT NOT NULL, stamp TEXT, bytes BIGINT, calls BIGINT, 
	CONSTRAINT pk_rank_dump PRIMARY KEY (id), 
	CONSTRAINT uq_rank_dump_dump_step_rank UNIQUE (dump, step, rank)
);

CREATE TABLE stack (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	frames TEXT NOT NULL, 
	CONSTRAINT pk_stack PRIMARY KEY (id), 
	CONSTRAINT uq_stack_digest UNIQUE (digest)
);

CREATE TABLE task (
	job VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	progress DOUBLE NOT NULL, 
	message TEXT NOT NULL, said TEXT, 
	CONSTRAINT pk_task PRIMARY KEY (job, number)
);

CREATE TABLE tensor_fact (
	id INTEGER NOT NULL, 
	cosine DOUBLE, 
	euclidean DOUBLE, 
	max_abs DOUBLE, 
	max_rel DOUBLE, 
	ratio_1e3 DOUBLE, 
	ratio_5e3 DOUBLE, 
	rel_l2 DOUBLE, 
	max_ulp DOUBLE, 
	median_ulp DOUBLE, 
	states INTEGER NOT NULL, 
	unequal BIGINT, 
	nonfinite_target BIGINT, 
	nonfinite_golden BIGINT, 
	nonfinite_disagree BIGINT, 
	worst TEXT, 
	histograms BLOB, 
	CONSTRAINT pk_tensor_fact PRIMARY KEY (id)
);

CREATE TABLE text (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_text PRIMARY KEY (id), 
	CONSTRAINT uq_text_digest UNIQUE (digest)
);

CREATE TABLE unit (
	id INTEGER NOT NULL, 
	comparison BIGINT NOT NULL, 
	step INTEGER NOT NULL, 
	rank INTEGER NOT NULL, 
	target BIGINT NOT NULL, 
	golden BIGINT NOT NULL, 
	mode TEXT NOT NULL, 
	inferred SMALLINT NOT NULL, 
	pairs INTEGER NOT NULL, 
	items INTEGER NOT NULL, 
	backward INTEGER, 
	verdict SMALLINT NOT NULL, 
	counts TEXT NOT NULL, 
	problems TEXT NOT NULL, calls BIGINT, 
	CONSTRAINT pk_unit PRIMARY KEY (id), 
	CONSTRAINT uq_unit_comparison_step_rank UNIQUE (comparison, step, rank)
);

CREATE TABLE flow (
	id INTEGER NOT NULL, 
	makers BLOB NOT NULL, spread BLOB, 
	CONSTRAINT pk_flow PRIMARY KEY (id)
);

CREATE INDEX ix_comparison_reference ON comparison (reference);

CREATE TABLE distance (
	id INTEGER NOT NULL, 
	target_bulk DOUBLE, 
	target_peak DOUBLE, 
	golden_bulk DOUBLE, 
	golden_peak DOUBLE, 
	golden_score DOUBLE, 
	measure SMALLINT NOT NULL, 
	ratio DOUBLE, 
	inverse DOUBLE, 
	CONSTRAINT pk_distance PRIMARY KEY (id)
);

CREATE TABLE collective (
	id INTEGER NOT NULL, 
	api TEXT NOT NULL, 
	call INTEGER NOT NULL, 
	ranks TEXT NOT NULL, 
	missing TEXT NOT NULL, 
	verdict SMALLINT NOT NULL, 
	faulty SMALLINT NOT NULL, 
	first_part BIGINT NOT NULL, 
	part_count INTEGER NOT NULL, 
	CONSTRAINT pk_collective PRIMARY KEY (id)
);

CREATE TABLE collective_part (
	id INTEGER NOT NULL, 
	unit BIGINT NOT NULL, 
	node INTEGER NOT NULL, 
	gave SMALLINT, 
	gave_severity DOUBLE NOT NULL, 
	took SMALLINT, 
	took_severity DOUBLE NOT NULL, 
	CONSTRAINT pk_collective_part PRIMARY KEY (id)
);

CREATE INDEX ix_collective_part_unit_node ON collective_part (unit, node);

CREATE TABLE producers (
	id INTEGER NOT NULL, 
	made BLOB NOT NULL, 
	CONSTRAINT pk_producers PRIMARY KEY (id)
);

CREATE TABLE note (
	id INTEGER NOT NULL, 
	pair BLOB NOT NULL, 
	node TEXT NOT NULL, 
	standing VARCHAR(16) NOT NULL, 
	text TEXT NOT NULL, 
	changed DOUBLE NOT NULL, 
	CONSTRAINT pk_note PRIMARY KEY (id), 
	CONSTRAINT uq_note_pair_node UNIQUE (pair, node)
);

CREATE TABLE precheck (
	id INTEGER NOT NULL, 
	word SMALLINT NOT NULL, 
	facts TEXT NOT NULL, 
	CONSTRAINT pk_precheck PRIMARY KEY (id)
);

CREATE INDEX ix_precheck_word_id ON precheck (word, id);

CREATE TABLE watch (
	serial INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	dump BIGINT NOT NULL, 
	partner BIGINT, 
	side VARCHAR(8) NOT NULL, 
	options TEXT NOT NULL, 
	comparison BIGINT, 
	compared TEXT, 
	begun TEXT NOT NULL, 
	seen TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_watch PRIMARY KEY (serial), 
	CONSTRAINT uq_watch_id UNIQUE (id), 
	CONSTRAINT uq_watch_dump UNIQUE (dump)
);

CREATE INDEX ix_watch_partner ON watch (partner);

CREATE TABLE checkpoint_diff (
	serial INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	target TEXT NOT NULL, 
	golden TEXT NOT NULL, 
	renames TEXT NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	job VARCHAR(32), 
	error TEXT, 
	answer TEXT, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_checkpoint_diff PRIMARY KEY (serial), 
	CONSTRAINT uq_checkpoint_diff_id UNIQUE (id)
);

CREATE TABLE checkpoint_tensor (
	diff BIGINT NOT NULL, 
	number INTEGER NOT NULL, 
	state SMALLINT NOT NULL, 
	name TEXT NOT NULL, 
	golden TEXT NOT NULL, 
	share DOUBLE NOT NULL, 
	largest DOUBLE NOT NULL, 
	facts TEXT NOT NULL, 
	CONSTRAINT pk_checkpoint_tensor PRIMARY KEY (diff, number)
);

CREATE INDEX ix_checkpoint_tensor_diff_state_number ON checkpoint_tensor (diff, state, number);

CREATE TABLE webhook (
	serial INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	url TEXT NOT NULL, 
	secret TEXT NOT NULL, 
	home TEXT NOT NULL, 
	kinds TEXT NOT NULL, 
	states TEXT NOT NULL, 
	subject VARCHAR(32), 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_webhook PRIMARY KEY (serial), 
	CONSTRAINT uq_webhook_id UNIQUE (id)
);

CREATE TABLE delivery (
	serial INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	webhook BIGINT NOT NULL, 
	event VARCHAR(32) NOT NULL, 
	job VARCHAR(32) NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	body TEXT, 
	tries INTEGER NOT NULL, 
	due DOUBLE, 
	reply_status INTEGER, 
	error TEXT, 
	said TEXT, 
	created DOUBLE NOT NULL, 
	finished DOUBLE, 
	CONSTRAINT pk_delivery PRIMARY KEY (serial), 
	CONSTRAINT uq_delivery_id UNIQUE (id)
);

CREATE INDEX ix_delivery_webhook_serial ON delivery (webhook, serial);

CREATE INDEX ix_delivery_due ON delivery (due);

CREATE TABLE item_block (
	id INTEGER NOT NULL, 
	columns BLOB NOT NULL, 
	CONSTRAINT pk_item_block PRIMARY KEY (id)
);

CREATE INDEX ix_node_pair_golden_name_id ON node_pair (golden_name, id) WHERE golden_name IS NOT NULL;

CREATE TABLE monitor (
	serial INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	path TEXT NOT NULL, 
	other TEXT, 
	status VARCHAR(16) NOT NULL, 
	job VARCHAR(32), 
	error TEXT, 
	answer TEXT, 
	findings TEXT, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_monitor PRIMARY KEY (serial), 
	CONSTRAINT uq_monitor_id UNIQUE (id)
);

INSERT INTO alembic_version (version_num) VALUES ('0016');
