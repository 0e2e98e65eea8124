package dedupe

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type processor struct {
	in      item.Type
	key     []*expression.ItemProgram
	names   []string
	reject  bool
	db      tx.Database
	attempt func(ctx context.Context) (core.Attempt, error)
	begins  bool // the step begins: older keys do not count
	keeps   bool // another step deletes the keys

	scope   string
	insert  string
	isReady bool // the table exists, without older keys
	// the keys of a dry run, which has read-only transactions
	dry map[string]bool
}

// newProcessor returns the processor for items of type b.In.
func newProcessor(cfg config, b registry.BuildContext) (item.Processor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	programs, err := compile(&cfg, b.In)
	if err != nil {
		return nil, err
	}
	if b.Attempt == nil {
		return nil, errors.New("dedupe works only in a chunk step: put it into the step's `processor`")
	}
	db, err := b.Databases.Database(b.StepDatabase)
	if err != nil {
		return nil, err
	}
	p := &processor{
		in: b.In, key: programs, names: cfg.Key, reject: cfg.Repeated == repeatedReject, db: db, attempt: b.Attempt,
		begins: !b.Continues && b.RedriveOf == 0, keeps: b.RedriveOf != 0,
	}
	p.insert = "INSERT INTO " + seenTable + " (scope, seen) VALUES (" + db.Dialect().Placeholder(1) + ", " + db.Dialect().Placeholder(2) + ") ON CONFLICT DO NOTHING"
	return p, nil
}

func (p *processor) NewCell() any { return p.in.NewCell() }

func (p *processor) NewItems(capacity int) item.Items { return p.in.NewItems(capacity) }

func (p *processor) Component() any { return p }

// A key counts only if its transaction is committed.
func (p *processor) Revocable() {}

func (p *processor) Close(context.Context) error {
	p.dry = nil
	return nil
}

func (p *processor) Finish(ctx context.Context) error {
	if p.keeps || !there(ctx, p.db.Conn()) {
		return nil
	}
	if err := p.findScope(ctx); err != nil {
		return err
	}
	return p.forget(ctx, p.db.Conn())
}

func (p *processor) findScope(ctx context.Context) error {
	attempt, err := p.attempt(ctx)
	p.scope = attempt.Scope()
	return err
}

// in the first transaction that commits
func (p *processor) ready(ctx context.Context, current tx.Tx) error {
	if p.isReady {
		return nil
	}
	if err := p.findScope(ctx); err != nil {
		return err
	}
	conn := current.Conn()
	if p.db.Dialect() != tx.SQLite { // a failure there would end the transaction, and others may make the table, too
		conn = p.db.Conn()
	}
	if err := p.makeTable(ctx, conn); err != nil {
		return err
	}
	if p.begins {
		if err := p.forget(ctx, current.Conn()); err != nil {
			return err
		}
	}
	p.isReady = true
	tx.AtEnd(ctx, p.db.Name(), func(committed bool) {
		p.isReady = committed
		p.begins = p.begins && !committed
	})
	return nil
}

func there(ctx context.Context, conn tx.Conn) bool {
	_, err := conn.ExecContext(ctx, "select 1 from "+seenTable+" where 1 = 0")
	return err == nil
}

func (p *processor) makeTable(ctx context.Context, conn tx.Conn) error {
	if there(ctx, conn) {
		return nil
	}
	scope, blob := "varchar(16)", "blob"
	switch p.db.Dialect() {
	case tx.Postgres:
		blob = "bytea"
	case tx.MySQL:
		scope, blob = "varbinary(16)", "varbinary(16)"
	case tx.SQLite:
	}
	create := "create table if not exists " + seenTable + " (scope " + scope + " not null, seen " + blob + " not null, primary key (scope, seen))"
	if _, err := conn.ExecContext(ctx, create); err != nil && !there(ctx, conn) { // two that make it at once
		return fmt.Errorf("create the table of keys: %w; or create it yourself: %s", err, create)
	}
	return nil
}

func (p *processor) forget(ctx context.Context, conn tx.Conn) error {
	if _, err := conn.ExecContext(ctx, "delete from "+seenTable+" where scope = "+p.db.Dialect().Placeholder(1), p.scope); err != nil {
		return fmt.Errorf("dedupe: delete the keys: %w", err)
	}
	return nil
}

func (p *processor) Chain(in any) (any, item.Advance, error) {
	frame, err := expression.NewFrame(in)
	if err != nil {
		return nil, nil, err
	}
	values, text := make([]row.Value, len(p.key)), []byte(nil)
	return in, func(ctx context.Context) error {
		text = text[:0]
		for i, program := range p.key {
			if values[i], err = program.Eval(frame); err != nil {
				return fmt.Errorf("dedupe: %w", err)
			}
			text = row.AppendKey(text, values[i])
		}
		first, err := p.isFirst(ctx, text)
		switch {
		case err != nil:
			return fmt.Errorf("dedupe: %w", err)
		case first:
			return nil
		case p.reject:
			return exception.InvalidItem("dedupe", exception.ClassValidate, fmt.Errorf("an item with %s was seen before", p.shown(values)))
		}
		return item.ErrFilter
	}, nil
}

func (p *processor) shown(values []row.Value) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprintf("%s = %s", p.names[i], v)
	}
	return strings.Join(texts, ", ")
}

func (p *processor) isFirst(ctx context.Context, key []byte) (bool, error) {
	current, ok := tx.From(ctx, p.db.Name())
	if !ok {
		return false, errors.New("there is no transaction: the step needs process_in_transaction: true")
	}
	sum := sha256.Sum256(key)
	if current.ReadOnly() {
		if p.dry == nil {
			p.dry = map[string]bool{}
		}
		seen := p.dry[string(sum[:16])]
		p.dry[string(sum[:16])] = true
		return !seen, nil
	}
	if err := p.ready(ctx, current); err != nil {
		return false, err
	}
	result, err := current.Conn().ExecContext(ctx, p.insert, p.scope, sum[:16])
	if err != nil {
		return false, fmt.Errorf("keep the key: %w", err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}
