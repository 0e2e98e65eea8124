package repository

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// schemaVersion is what this binary needs: major*1000 + minor, the number of the
// newest file in migrations/. A minor only adds, so an older binary works with
// it. A major may remove, so an older binary refuses it (rule R4: expand, then
// contract).
const schemaVersion = 2020

// oldestSchema is the oldest version that this binary can migrate. The tables of 1.x have no
// journal of the flow; builds before the first release created them.
const oldestSchema = 2000

const versionsPerMajor = 1000

// ErrSchemaNewer means that the tables have a newer major version than this binary knows: use a
// newer binary.
var ErrSchemaNewer = errors.New("the repository's schema is newer than this binary")

// ErrSchemaTooOld means that a build before the first release created the tables: they cannot be
// migrated to this binary's version.
var ErrSchemaTooOld = errors.New("the repository's schema comes from a build before the first release")

//go:embed migrations
var migrations embed.FS

// tables creates, migrates and checks the tables of the repository.
type tables struct{ store *store }

// CheckSchema returns an error unless the tables have the version that this binary needs (rule R4):
// core.ErrSchemaMissing if they are absent, outdated or half-way through a migration,
// ErrSchemaTooOld if they cannot be migrated, ErrSchemaNewer if their major version is newer. A
// newer minor is accepted.
func (r *tables) CheckSchema(ctx context.Context) error { return r.set().check(ctx) }

// Migrate creates the tables or migrates them to this binary's version. A schema at that version or
// a newer minor is left unchanged. Concurrent migrations wait for each other.
func (r *tables) Migrate(ctx context.Context) error { return r.set().migrate(ctx) }

func (r *tables) set() tableSet {
	return tableSet{
		store: r.store, what: "the repository", command: "surfin migrate", version: schemaVersion, oldest: oldestSchema,
		files: migrations, dir: "migrations", record: "schema_migrations", again: true,
	}
}

type tableSet struct {
	store   *store
	what    string // the owner of the tables, for messages
	command string // the command that creates them
	version uint   // the version that this binary needs
	oldest  uint   // the oldest version that can be migrated
	files   fs.FS
	dir     string // the folder of the migrations, with a folder for each dialect
	record  string // the table that records the version, without prefix
	// again means that every file can be executed again, so that a migration of a killed process is
	// repeated instead of reported.
	again bool
}

func (t tableSet) check(ctx context.Context) error {
	state, err := t.state(ctx)
	if err != nil {
		return err
	}
	return t.checkState(ctx, state)
}

func (t tableSet) migrate(ctx context.Context) error {
	state, err := t.state(ctx)
	if err != nil {
		return err
	}
	if !state.Dirty && state.To >= t.version || t.isTooOld(state) {
		return t.checkState(ctx, state)
	}
	// A dirty version may just be another process's migration in progress: Run waits for its lock.
	_, err = migrator.Run(ctx, t.store.db, t.migration(migrator.Up))
	var dirty *migrator.DirtyError
	if t.again && errors.As(err, &dirty) {
		force := t.migration(migrator.Force)
		force.Version = -1
		if _, err = migrator.Run(ctx, t.store.db, force); err == nil {
			_, err = migrator.Run(ctx, t.store.db, t.migration(migrator.Up))
		}
	}
	if err != nil {
		return fmt.Errorf("the tables of %s: %w", t.what, err)
	}
	return t.check(ctx)
}

func (t tableSet) checkState(ctx context.Context, state migrator.Result) error {
	where := fmt.Sprintf("in database %s (tables %s*)", t.store.db.Name(), t.store.prefix)
	switch {
	case state.To == 0 && !state.Dirty:
		return fmt.Errorf("%w: there is none %s; run `%s`", core.ErrSchemaMissing, where, t.command)
	case t.isTooOld(state):
		return fmt.Errorf("%w: version %s %s, this binary begins with %s; %s", ErrSchemaTooOld, version(state.To), where, version(t.oldest), t.removal(ctx))
	case state.Dirty:
		return fmt.Errorf("%w: a migration to version %s %s is in progress or did not end; run `%s` to see which",
			core.ErrSchemaMissing, version(state.To), where, t.command)
	case state.To/versionsPerMajor > t.version/versionsPerMajor:
		return fmt.Errorf("%w: version %s %s, this binary supports %s; use a newer surfin", ErrSchemaNewer, version(state.To), where, version(t.version))
	case state.To < t.version:
		return fmt.Errorf("%w: version %s %s, this binary needs %s; run `%s`", core.ErrSchemaMissing, version(state.To), where, version(t.version), t.command)
	}
	return nil
}

func (t tableSet) isTooOld(state migrator.Result) bool { return 0 < state.To && state.To < t.oldest }

func (t tableSet) removal(ctx context.Context) string {
	var file string
	if t.store.db.Dialect() == tx.SQLite && t.store.session(ctx).Raw("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&file).Error == nil && file != "" {
		return fmt.Sprintf("delete the file %s if it has no other data, drop the tables %s*, or use another file", file, t.store.prefix)
	}
	return fmt.Sprintf("drop the tables %s*, or use another database", t.store.prefix)
}

func version(v uint) string { return fmt.Sprintf("%d.%d", v/versionsPerMajor, v%versionsPerMajor) }

func (t tableSet) state(ctx context.Context) (migrator.Result, error) {
	if err := t.store.checkPrefix(); err != nil {
		return migrator.Result{}, err
	}
	state, err := migrator.Run(ctx, t.store.db, t.migration(migrator.Version))
	if err != nil {
		return state, fmt.Errorf("read the version of %s: %w", t.what, err)
	}
	return state, nil
}

func (t tableSet) migration(command migrator.Command) migrator.Options {
	return migrator.Options{
		FS: prefixed{t.files, t.store.prefix}, Dir: t.dir + "/" + string(t.store.db.Dialect()),
		Table: t.store.prefix + t.record, Command: command,
	}
}

const prefixMark = "{{prefix}}"

// prefixed is a file system of migrations with the prefix filled in while they
// are read.
type prefixed struct {
	fs.FS
	prefix string
}

// Open opens a folder unchanged and a file with the prefix filled in.
func (p prefixed) Open(name string) (fs.File, error) {
	file, err := p.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		return file, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(p.FS, name)
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte(prefixMark), []byte(p.prefix))
	return &filled{Reader: bytes.NewReader(text), info: filledInfo{info, int64(len(text))}}, nil
}

type filled struct {
	*bytes.Reader
	info filledInfo
}

func (f *filled) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *filled) Close() error { return nil }

type filledInfo struct {
	fs.FileInfo
	size int64
}

func (i filledInfo) Size() int64 { return i.size }
