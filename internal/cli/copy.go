package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/draft"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type copyRequest struct {
	from, to             string
	database, toDatabase string
	look                 sample
	only                 bool // print the job
	fromStart, accept    bool
	// At most one is set.
	add, replace bool
	upsert       []string
	skip         int
	parallel     int
}

func (r *copyRequest) check(to side) error {
	chosen := 0
	for _, is := range []bool{r.add, r.replace, len(r.upsert) > 0} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return usagef("--append, --replace and --upsert exclude each other")
	case r.skip < 0:
		return usagef("--skip %d: at least 0", r.skip)
	case r.parallel < 1:
		return usagef("--parallel %d: at least 1", r.parallel)
	case r.parallel > 1 && r.replace && to.table != "":
		return usagef("--replace and --parallel exclude each other: each part would remove the rows of the others")
	case r.parallel > 1 && r.add && to.file != "":
		return usagef("--append and --parallel exclude each other for a file, which is made of the parts")
	case r.add && urlpath.Is(to.file):
		return usagef("--append is for a table or a file of a disk: %s is published whole", to.file)
	case len(r.upsert) > 0 && to.table == "":
		return usagef("--upsert is for a table: a file has no keys")
	}
	return nil
}

func (r *copyRequest) target(to side) draft.Target {
	t := draft.Target{File: to.file, Table: to.table, Key: r.upsert, Append: r.add, Skip: r.skip, Parallel: r.parallel}
	switch {
	case to.table != "" && r.replace:
		t.Mode = "replace"
	case len(r.upsert) > 0:
		t.Mode = "upsert"
	}
	if to.database != tx.Default {
		t.Database = to.database
	}
	return t
}

func (c fileCommands) copyCommand() *cobra.Command {
	var req copyRequest
	cmd := &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a file or a table to a table or a file",
		Long: `Infers the fields of FROM, makes a job of them, and runs it. FROM and TO are files (.csv,
.json, .jsonl), or tables: table:NAME of --database, or DATABASE_URL#TABLE. The table TO is
created if it does not exist. A new copy refuses a table with rows and an existing file,
unless you choose --append, --replace or --upsert. A row that does not fit fails the copy;
--skip N leaves out up to N such rows, and the exit code is then 5, as after a gate.

A copy that failed or was killed resumes after its last commit if you give the same command
again, with the job of its first attempt; --from-start starts again. The history is kept
with that of other jobs, or in the database of a TO that is a URL. --print prints the job
without running it.`,
		Example: "  " + c.env.app.Name + " copy orders.csv table:orders\n  " + c.env.app.Name + " copy table:orders orders.csv --print\n  " +
			c.env.app.Name + " copy table:orders table:orders --database shop --to-database archive\n  " + c.env.app.Name + " copy orders.csv sqlite:shop.db#orders\n  " +
			c.env.app.Name + " copy orders.csv table:orders --upsert order_no",
		Args: exactly(2, "FROM and TO are required"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.from, req.to = args[0], args[1]
			if err := req.look.check(cmd); err != nil {
				return err
			}
			if req.toDatabase == "" {
				req.toDatabase = req.database
			}
			return c.copy(cmd.Context(), req)
		},
	}
	req.look.addFlags(cmd)
	addDatabaseFlag(cmd, &req.database, "`NAME` of the database of table:NAME")
	cmd.Flags().StringVar(&req.toDatabase, "to-database", "", "`NAME` of the database of TO (default: the one of --database)")
	cmd.Flags().BoolVar(&req.only, "print", false, "print the job without running it")
	cmd.Flags().BoolVar(&req.fromStart, "from-start", false, "start again, although an earlier copy could be resumed")
	cmd.Flags().BoolVar(&req.add, "append", false, "add to the rows of TO")
	cmd.Flags().BoolVar(&req.replace, "replace", false, "replace the rows of TO, all at once when the copy is done")
	cmd.Flags().StringSliceVar(&req.upsert, "upsert", nil, "add to the table TO, or replace the rows of the same `KEY` (columns, comma-separated, with a unique index)")
	cmd.Flags().IntVar(&req.skip, "skip", 0, "leave out up to `N` rows that do not fit")
	cmd.Flags().IntVar(&req.parallel, "parallel", 1, "copy `N` parts of the file at once")
	cmd.Flags().BoolVar(&req.accept, "accept-changes", false, "resume although the part of the file that was read has changed")
	return cmd
}

func (c fileCommands) copy(ctx context.Context, req copyRequest) error {
	from, err := c.source(req.from, req.database)
	if err != nil {
		return err
	}
	to, err := c.parseSide(req.to, req.toDatabase, tx.Default)
	if err != nil {
		return err
	}
	if err := req.check(to); err != nil {
		return err
	}
	if _, err := placeCommands(c).in(ctx, from.file, to.file); err != nil {
		return err
	}
	if err := c.env.configure(); err != nil {
		return err
	}
	if to.table != "" {
		if err := c.env.checkDatabase(to.database); err != nil {
			return err
		}
	}
	look := req.look
	look.Whole = look.Whole || from.file != "" && strings.Contains(filepath.Base(to.file), ".json") // objects stay unchanged
	shape, err := c.infer(ctx, from, look)
	if err != nil {
		return err
	}
	if err := c.fit(ctx, shape, to); err != nil {
		return err
	}
	target := req.target(to)
	if !req.only { // the job has no file
		if err := c.absolute(shape, &target); err != nil {
			return usage(err)
		}
	}
	text, err := shape.Copy(target, draft.Sides{From: c.sideText(from), To: c.sideText(to)})
	if err != nil {
		return usage(err)
	}
	if req.only {
		if target.Database != "" || shape.Database != "" {
			text = "# its databases are those of the settings, such as SURFIN_DATABASES_" + strings.ToUpper(cmp.Or(shape.Database, target.Database)) + "\n" + text
		}
		return c.env.print(text)
	}
	c.logNotes(ctx, shape)
	return c.runCopy(ctx, req, to, text)
}

func (c fileCommands) fit(ctx context.Context, shape *draft.Shape, to side) error {
	if shape.Table != "" || to.table == "" || c.env.isAbsent(to.database) {
		return nil
	}
	return c.env.withRawSession(ctx, c.env.observer(), func(s *Session) error {
		db, err := s.Provider.Database(to.database)
		if err != nil {
			return err
		}
		return shape.Into(ctx, db, to.table)
	})
}

func (c fileCommands) logNotes(ctx context.Context, shape *draft.Shape) {
	if shape.Table != "" {
		return
	}
	c.env.log.InfoContext(ctx, "looked at "+shape.Summary())
	for line := range strings.Lines(shape.Comments()) {
		c.env.log.WarnContext(ctx, strings.TrimPrefix(strings.TrimSpace(line), "# "))
	}
	for _, f := range shape.Fields {
		if f.Note != "" {
			c.env.log.InfoContext(ctx, "field "+f.Name+" is "+f.Type+": "+f.Note)
		}
	}
}

func (c fileCommands) absolute(shape *draft.Shape, to *draft.Target) (err error) {
	if shape.Table == "" {
		if shape.Path, err = urlpath.Abs(shape.Path); err != nil {
			return err
		}
	}
	if to.File != "" {
		to.File, err = urlpath.Abs(to.File)
	}
	return err
}

func (c fileCommands) sideText(p side) string {
	if p.table == "" {
		return ""
	}
	return c.env.settings.Databases[p.database].String() + "#" + p.table
}

func (c fileCommands) runCopy(ctx context.Context, req copyRequest, to side, text string) error {
	run := operator.RunRequest{Source: jobfile.Bytes(draft.CopyJob, []byte(text)), Folder: c.env.dir,
		Again: true, AsBegun: true, FromStart: req.fromStart, AcceptChanges: req.accept}
	if err := c.checkTarget(ctx, req, to, run); err != nil {
		return err
	}
	c.env.repeat = req.words() // there is no job file that `restart` could read
	return runCommands(c).runToEnd(ctx, func(ctx context.Context, s *operator.Service, hooks operator.Hooks) (*operator.Execution, error) {
		run.Hooks = hooks
		return s.Run(ctx, run)
	})
}

// A copy that continues has written the target's rows itself.
func (c fileCommands) checkTarget(ctx context.Context, req copyRequest, to side, run operator.RunRequest) error {
	if req.add || req.replace || len(req.upsert) > 0 {
		return nil
	}
	return c.env.withRawSession(ctx, c.env.observer(), func(s *Session) error {
		choice, err := s.Service.Choose(ctx, run)
		if err != nil || choice.Resumes != 0 && !req.fromStart {
			return err
		}
		if to.file != "" {
			return c.checkFile(ctx, to.file)
		}
		if c.env.isAbsent(to.database) {
			return nil
		}
		db, err := s.Provider.Database(to.database)
		if err != nil {
			return err
		}
		if has, err := draft.HasRows(ctx, db, to.table); err != nil || !has {
			return err
		}
		return usage(fmt.Errorf("table %s has rows already", to.table),
			"add to them:                   --append", "replace them:                  --replace", "replace those of the same key: --upsert KEY")
	})
}

func (c fileCommands) checkFile(ctx context.Context, path string) error {
	ctx, err := placeCommands(c).in(ctx, path)
	if err != nil {
		return err
	}
	switch _, err := place.Stat(ctx, path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case urlpath.Is(path) && err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case urlpath.Is(path):
		return usage(fmt.Errorf("%s is there already", path), "replace it:  --replace")
	}
	return usage(fmt.Errorf("%s is there already", path), "add to it:   --append", "replace it:  --replace")
}

// words is the command line that continues this copy.
func (r copyRequest) words() []string {
	words := []string{"copy", secret.Text(r.from), secret.Text(r.to)}
	if r.database != tx.Default {
		words = append(words, "--database", r.database)
	}
	if r.toDatabase != r.database {
		words = append(words, "--to-database", r.toDatabase)
	}
	if len(r.look.key) > 0 {
		words = append(words, "--key", strings.Join(r.look.key, ","))
	}
	if r.add {
		words = append(words, "--append")
	}
	if r.replace {
		words = append(words, "--replace")
	}
	if len(r.upsert) > 0 {
		words = append(words, "--upsert", strings.Join(r.upsert, ","))
	}
	if r.skip > 0 {
		words = append(words, "--skip", strconv.Itoa(r.skip))
	}
	return append(words, r.look.onlyOfFiles()...)
}
