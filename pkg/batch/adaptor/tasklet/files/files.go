// Package filetask is the tasklet `files`: it moves, copies, deletes, compresses, decompresses and checks
// files; a step that died can be run again (rules TL3 and TL4).
//
// It imports core, core/registry and internal/filestream.
package filetask

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config configures the tasklet. One of the first six keys is the operation.
type config struct {
	Move     string `key:"move" path:"true" doc:"Files to move."`
	Copy     string `key:"copy" path:"true" doc:"Files to copy."`
	Delete   string `key:"delete" path:"true" doc:"Files to delete."`
	Gzip     string `key:"gzip" path:"true" doc:"Files to compress, each to NAME.gz."`
	Gunzip   string `key:"gunzip" path:"true" doc:"Files NAME.gz to decompress."`
	Checksum string `key:"checksum" path:"true" doc:"Files whose checksums are computed."`

	Of string `key:"of" doc:"A step of this job: of the matching files, only those that this step has read to the end in this instance. Files added later stay, and a file that has changed since is an error."`

	To        string `key:"to" path:"true" doc:"The folder for the results; it is created if it does not exist. Without it gzip and gunzip write next to their files."`
	As        string `key:"as" path:"true" doc:"The name of the result, instead of a folder, if there is one file. Of checksum, the list to write, in the format of sha256sum -c."`
	Overwrite bool   `key:"overwrite" default:"false" doc:"Replace existing files."`
	Keep      bool   `key:"keep" default:"false" doc:"gzip and gunzip: keep the source files."`
	Missing   string `key:"missing" default:"error" enum:"error,ignore" doc:"How to treat a missing file: error fails the step. With of, this applies to a file that was read and is gone; if no file was read, that is never an error."`
	Algorithm string `key:"algorithm" default:"sha256" enum:"sha256,sha512,sha1,md5" doc:"The checksum's algorithm."`
	Equals    string `key:"equals" doc:"The expected checksum of one file, as hexadecimal digits; if it differs, the step fails."`
}

const (
	opMove     = "move"
	opCopy     = "copy"
	opDelete   = "delete"
	opGzip     = "gzip"
	opGunzip   = "gunzip"
	opChecksum = "checksum"
)

// "" unless exactly one operation is set
func (c *config) operation() (op, pattern string, several bool) {
	for _, o := range []struct{ op, pattern string }{
		{opMove, c.Move}, {opCopy, c.Copy}, {opDelete, c.Delete}, {opGzip, c.Gzip}, {opGunzip, c.Gunzip}, {opChecksum, c.Checksum},
	} {
		if o.pattern != "" {
			several = op != ""
			op, pattern = o.op, o.pattern
		}
	}
	return op, pattern, several
}

// Validate checks that there is one operation, with only its keys.
func (c *config) Validate() error {
	op, pattern, several := c.operation()
	bad := func(key, format string, args ...any) error {
		return &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case op == "":
		return bad("move", "the action is missing: set move, copy, delete, gzip, gunzip or checksum to a file or a pattern")
	case several:
		return bad(op, "a step has one action: use two steps")
	case strings.Contains(pattern, "**"):
		return bad(op, "%q: ** is not supported; name the folders, such as */*.csv", pattern)
	}
	var errs []error
	if _, err := filepath.Match(pattern, ""); err != nil {
		errs = append(errs, bad(op, "%q is not a pattern: a [ needs its ] (a literal [ is written \\[)", pattern))
	}
	only := func(key string, set bool, ops ...string) {
		if set && !slices.Contains(ops, op) {
			errs = append(errs, bad(key, "it is for %s, not for %s", strings.Join(ops, " and "), op))
		}
	}
	only("to", c.To != "", opMove, opCopy, opGzip, opGunzip)
	only("as", c.As != "", opMove, opCopy, opGzip, opGunzip, opChecksum)
	only("keep", c.Keep, opGzip, opGunzip)
	only("overwrite", c.Overwrite, opMove, opCopy, opGzip, opGunzip, opChecksum)
	only("equals", c.Equals != "", opChecksum)
	switch {
	case c.To != "" && c.As != "":
		errs = append(errs, bad("as", "a folder is set, too: set one of them"))
	case c.To == "" && c.As == "" && (op == opMove || op == opCopy):
		errs = append(errs, bad("to", "%s needs a folder (to), or the name of the result (as)", op))
	}
	if !slices.Contains([]string{"", "error", "ignore"}, c.Missing) {
		errs = append(errs, bad("missing", "%q is unknown (allowed: error, ignore)", c.Missing))
	}
	if _, ok := newHash(c.Algorithm); !ok {
		errs = append(errs, bad("algorithm", "%q is unknown (allowed: sha256, sha512, sha1, md5)", c.Algorithm))
	}
	return errors.Join(errs...)
}

// NamesStep implements trait.StepNamer.
func (c *config) NamesStep() (key, step string) { return "of", c.Of }

// NamesFilesOf implements trait.FilesNamer.
func (c *config) NamesFilesOf() {}

func results() []row.Field {
	return []row.Field{
		{Name: "files", Kind: row.Int}, {Name: "bytes", Kind: row.Int},
		{Name: "path", Kind: row.String, Nullable: true}, {Name: "checksum", Kind: row.String, Nullable: true},
	}
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "files", Config: reflect.TypeFor[config](), NoTransaction: true, Results: results(),
		Summary: "moves, copies, deletes, compresses or checks files",
		Doc: `A pattern has * for any run of characters except /, ? for one, and [a-z] for one of a range; a file
whose name equals the pattern is used itself. Folders that match are passed over; anything else that is not a
regular file is an error. gzip passes over files that end in .gz, and gunzip all others.

An existing file is never replaced unless ` + "`overwrite`" + ` allows it: all of them are checked before
anything is done. A target that already has the right content is done. A result is written
next to its target as ` + "`.NAME.surfin-...`" + `, synced and renamed, so that its name always has a complete file;
only then is the source removed. A file that changes meanwhile fails the step, and stays.

Each path may be in an object store (s3://bucket/key), also in another one than its source: a result is published
whole, and a source is removed as the step has read it (rule OB4).

With ` + "`of: load`" + ` only files are processed that the step ` + "`load`" + ` has read to the end, by the reader or the
partitioner ` + "`files`" + `. Use it wherever files may arrive while a job runs: a pattern alone also matches files that
came after they were listed. Files of partitions that failed stay where they are, and so does a file that came
later under a name that was processed.

A step that died or failed in the middle can run again and completes correctly: finished files
stay finished, and the rest is done, with the files that exist then (rule TL3). The results are ` + "`files` and `bytes`" + `
that this attempt processed, and of one file ` + "`path`" + `, the result's, and ` + "`checksum`" + `.`,
		Example: `job: archive
flow:
- step: load
  chunk:
    reader: {files: {glob: "in/*.csv", reader: {csv: {item: {id: int, name: string}}}}}
    writer: {table: {name: customer, mode: upsert, key: [id], create: true}}
- step: archive
  tasklet: {files: {move: "in/*.csv", of: load, to: done}}`,
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			made, err := newTasklet(*cfg.(*config), b.StepRecords)
			if err != nil {
				return nil, err
			}
			made.attempt = b.Attempt
			return made, nil
		},
	}}
}

type tasklet struct {
	config config
	// of the step in Config.Of; nil without a history
	records stepRecords
	// attempt is nil without a history
	attempt func(ctx context.Context) (core.Attempt, error)
	// Tests stop changes to the disk here.
	around func(call, name string, change func() error) error
}

// stepRecords returns the newest record of a step, and its partitions'.
type stepRecords func(ctx context.Context, step string) ([]core.StepExecution, error)

// newTasklet checks cfg. records are for `of`.
func newTasklet(cfg config, records stepRecords) (*tasklet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &tasklet{config: cfg, records: records, around: func(_, _ string, change func() error) error { return change() }}, nil
}

// begunKey is stored once files were found: an earlier attempt has handled those that are missing then.
const begunKey = "surfin.files.begun"

// Execute deals with all files.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	op, pattern, _ := t.config.operation()
	r := &run{tasklet: t, disk: confine.From(ctx), op: op, stop: c.Stop, scope: int64(c.Step.First), begun: isBegun(c), commit: c.Save}
	if r.scope == 0 {
		r.scope = int64(c.Step.ID)
	}
	err := r.all(ctx, pattern, func() error { return markBegun(ctx, c) })
	if c.Out == nil {
		c.Out = map[string]any{}
	}
	c.Out["files"], c.Out["bytes"], c.Out["path"], c.Out["checksum"] = r.files, r.bytes, nil, nil
	if r.path != "" {
		c.Out["path"] = r.path
	}
	if r.checksum != "" {
		c.Out["checksum"] = r.checksum
	}
	c.Counters.Read += r.files
	if err != nil {
		return fmt.Errorf("files: %s: %w", op, err)
	}
	return nil
}

func isBegun(c *core.StepContribution) bool {
	if c.Context == nil {
		return false
	}
	_, begun := c.Context.Get(begunKey)
	return begun
}

// before the first file is touched
func markBegun(ctx context.Context, c *core.StepContribution) error {
	if c.Context == nil || isBegun(c) {
		return nil
	}
	if err := c.Context.Put(begunKey, true); err != nil {
		return err
	}
	if c.Save == nil {
		return nil
	}
	return c.Save(ctx)
}
