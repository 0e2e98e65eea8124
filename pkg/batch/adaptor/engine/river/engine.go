package river

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// engineName is the engine's name in the settings.
const engineName = "river"

// The defaults of Config.
const (
	defaultSchema = "surfin_river"
	defaultPoll   = time.Second
	defaultGrace  = time.Minute
)

// Config configures the engine.
type Config struct {
	// Database is on PostgreSQL with the tables of the work, from adaptor/database/gorm. Required.
	Database tx.Database
	// Schema is for River's tables alone; "" means defaultSchema.
	Schema string
	// PollOnly workers poll every Poll and do not LISTEN: poolers in transaction mode, and proxies that end
	// idle connections, block notifications.
	PollOnly bool
	// Poll is for an idle worker; 0 means defaultPoll.
	Poll time.Duration
	// Grace is how long a delivery may be worked on, with its work not taken, before it is missing; 0 means
	// defaultGrace.
	Grace time.Duration
	// Log receives River's warnings and broken handlers; nil means none.
	Log *slog.Logger
}

// Engine is River as an engine.
type Engine struct {
	config  Config
	db      pooled
	manager *tx.Manager
	inserts *river.Client[pgx.Tx]
	clock   clock
}

var _ engine.Engine = (*Engine)(nil)

type pooled interface {
	PgxPool(ctx context.Context, maxConns int32) (*pgxpool.Pool, error)
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// New checks the configuration; nothing is opened.
func New(config Config) (*Engine, error) {
	if config.Database == nil {
		return nil, errors.New("engine river: it needs a database")
	}
	db, ok := config.Database.(pooled)
	if !ok || config.Database.Dialect() != tx.Postgres {
		return nil, fmt.Errorf("engine river: it needs PostgreSQL, but the database %s is %s; use the engine local", config.Database.Name(), config.Database.Dialect())
	}
	if config.Schema == "" {
		config.Schema = defaultSchema
	}
	if !schemaName.MatchString(config.Schema) {
		return nil, fmt.Errorf("engine river: the schema %q must have only lower-case letters, digits and _, at most 40", config.Schema)
	}
	if config.Poll == 0 {
		config.Poll = defaultPoll
	}
	if config.Grace == 0 {
		config.Grace = defaultGrace
	}
	if config.Poll < river.FetchPollIntervalMin || config.Grace < 0 {
		return nil, fmt.Errorf("engine river: poll %v and grace %v must be positive", config.Poll, config.Grace)
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	inserts, err := river.NewClient(riverpgxv5.New(nil), &river.Config{
		Schema: config.Schema, Logger: quiet(config.Log), Hooks: []rivertype.Hook{&schedule{}}, MaxAttempts: 1,
		// This is for how long the insert of one transaction also covers the notification of the next,
		// though the first may roll back.
		FetchCooldown: river.FetchCooldownMin,
	})
	if err != nil {
		return nil, fmt.Errorf("engine river: %w", err)
	}
	return &Engine{config: config, db: db, manager: tx.NewManager(config.Database), inserts: inserts}, nil
}

// Capabilities implements engine.Engine.
func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: engineName, Distributed: true, Transactional: true, Loses: true, Late: soon + e.config.Poll + e.config.Poll/10}
}

// Enqueue implements engine.Engine.
func (e *Engine) Enqueue(ctx context.Context, ds ...engine.Delivery) error {
	if err := engine.CheckAll(ds); err != nil || len(ds) == 0 {
		return err
	}
	params := make([]river.InsertManyParams, len(ds))
	var again []delivery
	for i, d := range ds {
		d = d.Filled()
		args := deliveryOf(d)
		params[i] = river.InsertManyParams{Args: args, InsertOpts: &river.InsertOpts{
			Queue: queueOf(d.Queue), Priority: d.Priority, ScheduledAt: d.NotBefore,
		}}
		if d.Epoch > 1 {
			again = append(again, args)
		}
	}
	return e.manager.Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		if err := e.supersede(ctx, again); err != nil {
			return fmt.Errorf("engine river: remove earlier deliveries: %w", err)
		}
		conn := tx.ConnOf(ctx, e.config.Database)
		now, err := e.clock.now(func() (now time.Time, err error) {
			err = conn.QueryRowContext(ctx, clockQuery).Scan(&now)
			return now, err
		})
		if err != nil {
			return fmt.Errorf("engine river: read the database's time: %w", err)
		}
		ctx = withTime(ctx, now)
		err = pgxconn.Run(ctx, conn, "COPY river_job FROM STDIN", func(c *pgx.Conn) error {
			_, err := e.inserts.InsertManyFastTx(ctx, &borrowed{conn: c}, params)
			return err
		})
		if err != nil {
			return fmt.Errorf("engine river: enqueue: %w", err)
		}
		return nil
	})
}

// Deliveries with lower epochs, including current ones, are removed: no worker takes their work, and the
// process that would end them may be dead.
func (e *Engine) supersede(ctx context.Context, again []delivery) error {
	if len(again) == 0 {
		return nil
	}
	return e.remove(ctx, again, `(j.args->>'epoch')::bigint < d.epoch`)
}

// Cancel implements engine.Engine.
func (e *Engine) Cancel(ctx context.Context, ds ...engine.Delivery) error {
	if err := engine.CheckAll(ds); err != nil || len(ds) == 0 {
		return err
	}
	if err := e.remove(ctx, deliveriesOf(ds), same+` AND j.state IN (`+waiting+`)`); err != nil {
		return fmt.Errorf("engine river: cancel: %w", err)
	}
	return nil
}

const (
	waiting = `'available', 'pending', 'retryable', 'scheduled'`
	same    = `j.args->>'epoch' = d.epoch::text`
)

// OFFSET 0 makes PostgreSQL search our index for each work, even with few statistics of the table.
func (e *Engine) jobs() string {
	return `SELECT * FROM ` + e.config.Schema + `.river_job WHERE args->>'work' = d.work OFFSET 0`
}

// A locked job is being fetched, or removed.
func (e *Engine) remove(ctx context.Context, ds []delivery, condition string) error {
	list, err := json.Marshal(ds)
	if err != nil {
		return err
	}
	_, err = tx.ConnOf(ctx, e.config.Database).ExecContext(ctx, `DELETE FROM `+e.config.Schema+`.river_job WHERE id IN (
		SELECT j.id FROM jsonb_to_recordset($1::jsonb) d(work text, epoch bigint), LATERAL (`+e.jobs()+` FOR UPDATE SKIP LOCKED) j
		WHERE `+condition+`)`, string(list))
	return err
}

// Missing implements engine.Engine. A delivery exists while its job waits, or has run for less than the
// grace.
func (e *Engine) Missing(ctx context.Context, ds ...engine.Delivery) (missing []engine.Delivery, err error) {
	if err := engine.CheckAll(ds); err != nil || len(ds) == 0 {
		return nil, err
	}
	list, err := json.Marshal(deliveriesOf(ds))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("engine river: find deliveries: %w", err)
		}
	}()
	rows, err := tx.ConnOf(ctx, e.config.Database).QueryContext(ctx, `SELECT d.number
		FROM ROWS FROM (jsonb_to_recordset($1::jsonb) AS (work text, epoch bigint)) WITH ORDINALITY d(work, epoch, number)
		WHERE NOT EXISTS (SELECT FROM (`+e.jobs()+`) j WHERE `+same+` AND (
			j.state IN (`+waiting+`) OR j.state = 'running' AND j.attempted_at > now() - make_interval(secs => $2)))
		ORDER BY d.number`, string(list), e.config.Grace.Seconds())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var number int
		if err := rows.Scan(&number); err != nil {
			return nil, err
		}
		missing = append(missing, ds[number-1])
	}
	return missing, rows.Err()
}

func deliveriesOf(ds []engine.Delivery) []delivery {
	args := make([]delivery, len(ds))
	for i, d := range ds {
		args[i] = deliveryOf(d)
	}
	return args
}
