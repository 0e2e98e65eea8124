package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/draft"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// copyRequest is the command line of copy.
type copyRequest struct {
	from, to             string
	database, toDatabase string
	look                 sample
	only                 bool // print the job
	fromStart, accept    bool
}

func (c fileCommands) copyCommand() *cobra.Command {
	var req copyRequest
	cmd := &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a file or a table to a table or a file",
		Long: `Makes a job of what infer says of FROM, and runs it. FROM and TO are files (.csv, .json,
.jsonl), or tables: table:NAME of --database, or DATABASE_URL#TABLE. The table TO is made
where it is absent. Rows that do not fit are skipped and counted.

A copy that failed or was killed goes on behind its last commit when the same command is
given again, with the job that it began with; --from-start begins anew. The history is kept
where that of other jobs is, or in the database of a TO that is a URL. With --print the job is
printed and nothing is run.`,
		Example: "  " + c.env.app.Name + " copy orders.csv table:orders\n  " + c.env.app.Name + " copy table:orders orders.csv --print\n  " +
			c.env.app.Name + " copy table:orders table:orders --database shop --to-database archive\n  " + c.env.app.Name + " copy orders.csv sqlite:shop.db#orders",
		Args: exactly(2, "copy what, and where to?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.from, req.to = args[0], args[1]
			if req.toDatabase == "" {
				req.toDatabase = req.database
			}
			return c.copy(cmd.Context(), req)
		},
	}
	req.look.addFlags(cmd)
	addDatabaseFlag(cmd, &req.database, "`NAME` of the database of table:NAME")
	cmd.Flags().StringVar(&req.toDatabase, "to-database", "", "`NAME` of the database of TO (default: that of --database)")
	cmd.Flags().BoolVar(&req.only, "print", false, "print the job and run nothing")
	cmd.Flags().BoolVar(&req.fromStart, "from-start", false, "begin anew, though an earlier copy can go on")
	cmd.Flags().BoolVar(&req.accept, "accept-changes", false, "go on though the file has changed in what was read of it")
	return cmd
}

func (c fileCommands) copy(ctx context.Context, req copyRequest) error {
	from, err := c.source(req.from, req.database)
	if err != nil {
		return err
	}
	to, err := c.parsePlace(req.to, req.toDatabase, tx.Default)
	if err != nil {
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
	shape, err := c.infer(ctx, from, req.look)
	if err != nil {
		return err
	}
	target := draft.Target{File: to.file, Table: to.table}
	if to.database != tx.Default {
		target.Database = to.database
	}
	if !req.only { // the job is in no file
		if err := c.absolute(shape, &target); err != nil {
			return usage(err)
		}
	}
	text, err := shape.Copy(target, draft.Sides{From: c.sideText(from), To: c.sideText(to)})
	if err != nil {
		return drafted(err)
	}
	if req.only {
		if target.Database != "" || shape.Database != "" {
			text = "# its databases are those of the settings, such as SURFIN_DATABASES_" + strings.ToUpper(cmp.Or(shape.Database, target.Database)) + "\n" + text
		}
		return c.env.print(text)
	}
	return c.runCopy(ctx, req, to, text)
}

// absolute makes the paths of both files absolute.
func (c fileCommands) absolute(shape *draft.Shape, to *draft.Target) (err error) {
	if shape.Table == "" {
		if shape.Path, err = filepath.Abs(shape.Path); err != nil {
			return err
		}
	}
	if to.File != "" {
		to.File, err = filepath.Abs(to.File)
	}
	return err
}

// sideText tells a table from those of other databases. It has no password.
func (c fileCommands) sideText(p place) string {
	if p.table == "" {
		return ""
	}
	return c.env.settings.Databases[p.database].String() + "#" + p.table
}

// runCopy runs the job of a copy: the instance of both sides where it can go on, else a new one.
func (c fileCommands) runCopy(ctx context.Context, req copyRequest, to place, text string) error {
	run := operator.RunRequest{Source: jobfile.Bytes(draft.CopyJob, []byte(text)), Folder: c.env.dir,
		Again: true, AsBegun: true, FromStart: req.fromStart, AcceptChanges: req.accept}
	c.env.repeat = req.words() // the job is in no file that `restart` could read
	return runCommands(c).runToEnd(ctx, func(ctx context.Context, s *operator.Service, hooks operator.Hooks) (*operator.Execution, error) {
		choice, err := s.Choose(ctx, run)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(to.file); to.file != "" && choice.Resumes == 0 && !errors.Is(err, fs.ErrNotExist) {
			return nil, usagef("%s is there already: remove it, or name another file", to.file)
		}
		run.Hooks = hooks
		return s.Run(ctx, run)
	})
}

// words are the command that continues with this copy.
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
	return words
}
