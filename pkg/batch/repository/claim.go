package repository

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// checkpointsVersion is the newest version in checkpoints/, as schemaVersion is in migrations/.
const checkpointsVersion = 1001

//go:embed checkpoints
var checkpointMigrations embed.FS

// defaultClaimWait is the default of CheckpointOptions.Wait: how long a claim waits for the open
// transaction of the previous attempt.
const defaultClaimWait = time.Minute

// CheckpointOptions adjust Checkpoints.
type CheckpointOptions struct {
	// AutoMigrate reports for which dialects Acquire creates or updates the tables; nil means none.
	AutoMigrate func(tx.Dialect) bool
	// Wait bounds how long Acquire waits for an open transaction of the previous attempt: two
	// leases are enough on PostgreSQL (rule L7). 0 means defaultClaimWait.
	Wait time.Duration
	// Every is the time between two reports of a running attempt to the repository. 0 means a
	// second.
	Every time.Duration
}

// Checkpoints keeps the checkpoints of a repository's steps in the databases that the steps work
// in, if these are not the repository's (rule C18): a model.CheckpointStores. Position, counters and
// skips commit there, in the chunk's own transaction. A restart trusts them; the repository's
// records follow.
//
// The tables begin with the repository's prefix: PREFIXcheckpoint has a row for each step of an
// instance, PREFIXcheckpoint_skip the skipped items that are not in the repository yet.
// Repositories may share the tables: each has its own identity.
type Checkpoints struct {
	history  *store
	provider tx.Provider
	options  CheckpointOptions
}

var _ model.CheckpointStores = (*Checkpoints)(nil)

// NewCheckpoints returns the checkpoints of r in the databases of provider.
func NewCheckpoints(r *Repository, provider tx.Provider, options CheckpointOptions) *Checkpoints {
	if options.Wait == 0 {
		options.Wait = defaultClaimWait
	}
	if options.Every == 0 {
		options.Every = time.Second
	}
	return &Checkpoints{history: r.store, provider: provider, options: options}
}

// Migrate creates or updates the tables in a database.
func (c *Checkpoints) Migrate(ctx context.Context, database string) error {
	p, err := c.store(database)
	if err != nil {
		return err
	}
	return checkpointTables(p).migrate(ctx)
}

// CheckSchema returns an error if a database lacks the tables: core.ErrSchemaMissing,
// ErrSchemaNewer.
func (c *Checkpoints) CheckSchema(ctx context.Context, database string) error {
	p, err := c.store(database)
	if err != nil {
		return err
	}
	return checkpointTables(p).check(ctx)
}

func (c *Checkpoints) store(database string) (*store, error) {
	db, err := c.provider.Database(database)
	if err != nil {
		return nil, err
	}
	return newStore(db, c.history.prefix).masking(c.history.mask), nil
}

func checkpointTables(p *store) tableSet {
	return tableSet{
		store: p, what: "the checkpoints", command: "surfin migrate --database " + p.db.Name(), version: checkpointsVersion,
		files: checkpointMigrations, dir: "checkpoints", record: "checkpoint_migrations", again: true,
	}
}

// Acquire implements model.CheckpointStores. It locks the step's row, which waits for a chunk that
// the previous attempt is just committing, and then names this attempt in it. IDs of attempts only
// grow, so from then on an earlier attempt can neither commit nor claim, and the committed state is
// final (rule L5).
//
// An attempt that does not continue an earlier one begins without a position.
func (c *Checkpoints) Acquire(ctx context.Context, run *model.StepRun, database string) (ports.ClaimedStore, error) {
	s, err := c.claim(ctx, run, database)
	if err != nil {
		return nil, fmt.Errorf("claim step %s in database %s: %w", run.Step.Name, database, err)
	}
	return s, nil
}

func (c *Checkpoints) claim(ctx context.Context, run *model.StepRun, database string) (*claimed, error) {
	p, err := c.store(database)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, p); err != nil {
		return nil, err
	}
	s := &claimed{store: p, history: c.history, run: run, ref: claimRef(run.Ref), every: c.options.Every, notifiedAt: time.Now()}
	if err := s.identify(ctx, run.Data.Job.InstanceID, run.Step.Name); err != nil {
		return nil, err
	}
	s.updates = [2]string{s.checkpointSQL(false), s.checkpointSQL(true)}
	before, err := c.takeRow(ctx, s)
	if err != nil {
		return nil, err
	}
	if before.CountedID != 0 {
		update := s.updateEarlier
		if before.CountedID == s.ref.ID { // of a worker that lost the partition
			update = s.updateRunning
		}
		if err := s.syncRecord(ctx, before, update); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// HasCommitted implements model.CheckpointStores.
func (c *Checkpoints) HasCommitted(ctx context.Context, database string, instance core.JobInstanceID, step string, first core.StepExecutionID) (bool, error) {
	if database == c.history.db.Name() {
		return false, nil
	}
	found, err := c.hasCommitted(ctx, database, instance, step, first)
	if err != nil {
		return false, fmt.Errorf("read the checkpoint of step %s in database %s: %w", step, database, err)
	}
	return found, nil
}

func (c *Checkpoints) hasCommitted(ctx context.Context, database string, instance core.JobInstanceID, step string, first core.StepExecutionID) (bool, error) {
	p, err := c.store(database)
	if err != nil {
		return false, err
	}
	if err := checkpointTables(p).check(ctx); err != nil {
		if errors.Is(err, core.ErrSchemaMissing) {
			return false, nil
		}
		return false, err
	}
	s := &claimed{store: p, history: c.history}
	if err := s.identify(ctx, instance, step); err != nil {
		return false, err
	}
	row, err := s.read(ctx)
	own := row != nil && (row.Instance == "" || row.Instance == s.identity) // a claim reports rows of other instances
	return own && row.CountedID >= first && row.Position != "", err
}

func (c *Checkpoints) prepare(ctx context.Context, p *store) error {
	tables := checkpointTables(p)
	err := tables.check(ctx)
	if errors.Is(err, core.ErrSchemaMissing) && c.options.AutoMigrate != nil && c.options.AutoMigrate(p.db.Dialect()) {
		return tables.migrate(ctx)
	}
	return err
}

// takeRow locks the row and writes the attempt into it. It returns the row as it was before, and
// notes where the step starts. It fails with core.ErrLostOwner if a later attempt has the row.
func (c *Checkpoints) takeRow(ctx context.Context, s *claimed) (before *checkpoint, err error) {
	waiting, cancel := context.WithTimeout(ctx, c.options.Wait)
	defer cancel()
	err = s.store.transact(waiting, func(ctx context.Context) error {
		before, err = s.lock(ctx)
		if err != nil {
			return err
		}
		if before, err = s.admit(ctx, before); err != nil {
			return err
		}
		if err := s.chooseStart(before); err != nil {
			return err
		}
		text, err := startContext(s.start.Context)
		if err != nil {
			return err
		}
		return s.store.exec(ctx, `UPDATE {checkpoint}
			SET job_name = ?, instance = ?, instance_key = ?, step_execution_id = ?, owner = ?, epoch = ?, position = ?, context = ?, counted_id = ?, claimed_at = {now}
			WHERE repository = ? AND instance_id = ? AND step = ?`,
			append([]any{s.run.Data.Job.JobName, s.identity, s.instanceKey, s.ref.ID, s.ref.Owner.String(), s.ref.Epoch, string(s.start.Position), text, int64(before.CountedID)}, s.key.values()...)...).Error
	})
	if err != nil {
		return nil, s.wrapOwner(ctx, waiting, err)
	}
	return before, nil
}

func startContext(c *core.ExecutionContext) (string, error) {
	if c == nil {
		return "", nil
	}
	text, err := c.Encode()
	return string(text), err
}

// lock creates the row if it does not exist, and returns it locked: the upsert locks it in both
// cases.
func (s *claimed) lock(ctx context.Context) (*checkpoint, error) {
	insert, conflict := `INSERT INTO {checkpoint} (repository, instance_id, step, job_name, step_execution_id, owner, epoch, claimed_at)
		VALUES (?, ?, ?, '', 0, '', 0, {now}) `, "ON CONFLICT (repository, instance_id, step) DO UPDATE SET repository = excluded.repository"
	if s.store.db.Dialect() == tx.MySQL {
		conflict = "ON DUPLICATE KEY UPDATE repository = VALUES(repository)"
	}
	rows, err := s.change(ctx, insert+conflict, s.key.values()...)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("the checkpoint has %d rows instead of one", len(rows))
	}
	return &rows[0], nil
}

// change changes the step's row, and returns it. MySQL has no RETURNING: the transaction has the row's lock.
func (s *claimed) change(ctx context.Context, text string, args ...any) (rows []checkpoint, err error) {
	if s.store.db.Dialect() != tx.MySQL {
		return rows, s.store.scan(ctx, &rows, text+" RETURNING "+strings.Join(checkpointColumns(), ", "), args...)
	}
	if done := s.store.exec(ctx, text, args...); done.Error != nil || done.RowsAffected == 0 {
		return nil, done.Error
	}
	row, err := s.read(ctx)
	if row != nil {
		rows = append(rows, *row)
	}
	return rows, err
}

// chooseStart notes where the attempt starts: at the state committed here. The repository's record
// is older, and is used only if there is no row yet. chooseStart fails if a later attempt has the
// row, or if the row of an earlier attempt is missing.
func (s *claimed) chooseStart(before *checkpoint) error {
	switch {
	case s.adopts:
		var err error
		s.start, err = before.record()
		s.start.Counters = core.Counters{}
		return err
	case before.StepExecutionID > s.ref.ID || before.StepExecutionID == s.ref.ID && before.Epoch >= s.ref.Epoch:
		return fmt.Errorf("%w (step execution %d has claimed it)", core.ErrLostOwner, before.StepExecutionID)
	case before.StepExecutionID == s.ref.ID: // of a worker that lost the partition
		var err error
		s.start, err = before.record()
		return err
	case s.isSuperseded(before.StepExecutionID): // from the start: the state that earlier executions left does not count
		s.start = ports.Checkpoint{Position: s.run.Step.Position, Context: s.run.Step.Context}
		return nil
	case before.StepExecutionID == 0 && len(s.run.Data.Earlier.Position) > 0:
		return fmt.Errorf("%w: step execution %d has committed, but not here; does the step use another database than before, or was the database restored from an older backup? "+
			"To start over, remove its rows and restart with --from-start", ports.ErrCheckpointMissing, s.run.Data.Earlier.ID)
	case before.StepExecutionID == 0:
		s.start = ports.Checkpoint{Position: s.run.Step.Position, Context: s.run.Step.Context}
		return nil
	}
	var err error
	s.start, err = before.record()
	s.start.Counters = core.Counters{} // of another attempt
	return err
}

// claimShift leaves room for the epochs that Reclaim raises here, below the repository's next
// epoch: an assignment of a partition follows all claims of earlier assignments.
const claimShift = 20

func claimRef(ref ports.StepRef) ports.StepRef {
	ref.Epoch <<= claimShift
	return ref
}

// isSuperseded reports whether an attempt belongs to finished work: the step completed after it in
// an earlier round of a loop, or everything runs again. The row may still name such an attempt if
// the previous attempt did not get to claim it.
func (s *claimed) isSuperseded(attempt core.StepExecutionID) bool {
	return s.run.Data.Earlier == nil || attempt != 0 && attempt < s.run.Data.Earlier.First
}

// wrapOwner adds to the failure of a claim that timed out the owner of the transaction that it
// waited for.
func (s *claimed) wrapOwner(ctx, waiting context.Context, failure error) error {
	if waiting.Err() == nil && !dberr.IsBusy(failure) {
		return failure
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownerQueryTimeout)
	defer cancel()
	row, err := s.read(asking)
	if err != nil || row == nil || row.Owner == "" { // no owner is known
		return failure
	}
	owner := ports.ParseOwner(row.Owner)
	return fmt.Errorf("%w (waited for a transaction; the step was claimed by owner %s, process %d)", failure, owner.Host, owner.PID)
}
