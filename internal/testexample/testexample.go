// Package testexample keeps the compiled examples short. Any failure panics, which fails the
// example.
//
// It imports core, tx and adaptor/database/gorm. Only tests import it.
package testexample

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Check panics on an error.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}

// Must panics on an error.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Dir returns a folder, to be removed by done.
func Dir() (dir string, done func()) {
	dir = Must(os.MkdirTemp("", "surfin-example-"))
	return dir, func() { Check(os.RemoveAll(dir)) }
}

// File writes a file in a new folder and returns its path.
func File(name, text string) (path string, done func()) {
	dir, done := Dir()
	path = filepath.Join(dir, name)
	Check(os.WriteFile(path, []byte(text), 0o600))
	return path, done
}

// SQLite returns a provider with one new database, after these statements.
func SQLite(statements ...string) (provider *gormdb.DBProvider, db tx.Database, done func()) {
	dir, remove := Dir()
	ctx := context.Background()
	provider = Must(gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: "sqlite:" + filepath.Join(dir, "example.db")}}))
	db = Must(provider.Database(tx.Default))
	for _, s := range statements {
		Must(db.Conn().ExecContext(ctx, s))
	}
	return provider, db, func() {
		Check(provider.Close())
		remove()
	}
}

// Text returns the one value of a query's one row, as a text.
func Text(db tx.Database, query string) string {
	var text string
	Check(db.Conn().QueryRowContext(context.Background(), query).Scan(&text))
	return text
}

// Print reads all items and prints them.
func Print[T any](r item.Reader) {
	for _, item := range Read[T](r) {
		fmt.Printf("%+v\n", item)
	}
}

// Read reads all items, as a chunk step does.
func Read[T any](r item.Reader) []T {
	ctx := context.Background()
	if o, ok := r.Component().(item.Opener); ok {
		Check(o.Open(ctx, nil))
	}
	if c, ok := r.Component().(item.Closer); ok {
		defer func() { Check(c.Close(ctx)) }()
	}
	items := r.NewItems(1)
	for {
		err := r.Fill(ctx, items, items.Len()+1)
		if errors.Is(err, io.EOF) {
			break
		}
		Check(err)
	}
	list := make([]T, items.Len())
	for i := range list {
		list[i] = items.At(i).(T) //nolint:forcetypeassert // the reader's type
	}
	return list
}

// Write writes the items as one chunk, as a chunk step does around its commit.
func Write[T any](w item.Writer, items ...T) {
	ctx := context.Background()
	if o, ok := w.Component().(item.Opener); ok {
		Check(o.Open(ctx, nil))
	}
	Check(w.Write(ctx, &item.Slice[T]{Items: items}))
	if p, ok := w.Component().(item.Preparer); ok {
		Check(p.Prepare(ctx))
	}
	if r, ok := w.Component().(item.Releaser); ok {
		Check(r.Release(ctx))
	}
	if f, ok := w.Component().(item.Finisher); ok {
		Check(f.Finish(ctx))
	}
	if c, ok := w.Component().(item.Closer); ok {
		Check(c.Close(ctx))
	}
}

// Process passes items through a processor and prints the results.
func Process[T any](p item.Processor, items ...T) {
	ctx := context.Background()
	in := p.NewCell().(*item.Cell[T])
	out, advance, err := p.Chain(in)
	Check(err)
	made := p.NewItems(1)
	for _, each := range items {
		in.Item = each
		if err := advance(ctx); err != nil {
			fmt.Println(err)
			continue
		}
		made.Reset()
		made.Store(out)
		r, ok := made.At(0).(item.Row)
		if !ok {
			fmt.Printf("%+v\n", made.At(0))
			continue
		}
		for i, v := range r.Values() {
			fmt.Printf("%s=%s\n", r.Schema().Field(i).Name, v)
		}
	}
}
