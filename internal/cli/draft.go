package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/draft"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage(errors.New(what), "usage:  "+cmd.UseLine())
		}
		return nil
	}
}

type sample struct {
	draft.Options
	// key orders the reading of a table; empty means its own key.
	key   []string
	types []string
}

func (s *sample) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&s.Rows, "rows", 0, fmt.Sprintf("read the first `N` rows (default: all, or the first %d MB, of JSON %d MB)", draft.MaxBytes>>20, draft.MaxJSON>>20))
	f.StringSliceVar(&s.key, "key", nil, "read a table in the order of these `COLUMNS` (comma-separated), which identify a row (default: its primary key)")
	f.StringVar(&s.Delimiter, "delimiter", "", "the `CHARACTER` between the fields of csv, or tab (default: detected)")
	f.StringVar(&s.Encoding, "encoding", "", "the `NAME` of the text's encoding (default: utf-8, or what a byte order mark says)")
	f.BoolVar(&s.NoHeader, "no-header", false, "the first record of csv is data: columns are column1, column2, ...")
	f.BoolVar(&s.Header, "header", false, "the first record of csv has the names, though they may be data (such as years)")
	f.BoolVar(&s.LazyQuotes, "lazy-quotes", false, "accept quotes inside a field of csv")
	f.IntVar(&s.SkipLines, "skip-lines", 0, "skip the first `N` lines of csv, before its header")
	f.BoolVar(&s.Whole, "keep-objects", false, "keep objects of JSON as json instead of making fields of their members")
	f.BoolVar(&s.AllText, "all-text", false, "make every field a string")
	f.StringArrayVar(&s.types, "type", nil, "`NAME=TYPE`: the type of a field, such as id=string, day=date:dd/MM/yyyy, price=\"decimal:2 null\" (repeat it for more)")
}

func (s *sample) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("rows") && s.Rows < 1 {
		return usagef("--rows %d: at least 1", s.Rows)
	}
	if s.Header && s.NoHeader {
		return usagef("--header and --no-header exclude each other")
	}
	if s.SkipLines < 0 {
		return usagef("--skip-lines %d: at least 0", s.SkipLines)
	}
	s.Types = map[string]string{}
	for _, t := range s.types {
		name, text, ok := strings.Cut(t, "=")
		if !ok || name == "" || text == "" {
			return usagef("--type %s: NAME=TYPE is expected, such as id=string", t)
		}
		s.Types[name] = text
	}
	if err := s.CheckTypes(); err != nil {
		return usage(fmt.Errorf("--type: %w", err))
	}
	return nil
}

func (s *sample) onlyOfFiles() (words []string) {
	add := func(is bool, more ...string) {
		if is {
			words = append(words, more...)
		}
	}
	add(s.Rows > 0, "--rows", strconv.Itoa(s.Rows))
	add(s.Delimiter != "", "--delimiter", s.Delimiter)
	add(s.Encoding != "", "--encoding", s.Encoding)
	add(s.NoHeader, "--no-header")
	add(s.Header, "--header")
	add(s.LazyQuotes, "--lazy-quotes")
	add(s.SkipLines > 0, "--skip-lines", strconv.Itoa(s.SkipLines))
	add(s.AllText, "--all-text")
	add(s.Whole, "--keep-objects")
	for _, t := range s.types {
		words = append(words, "--type", t)
	}
	return words
}

type side struct {
	file, table string
	database    string
}

const tableMark = "table:"

// parseSide parses FILE, table:NAME and DATABASE_URL#TABLE.
func (c fileCommands) parseSide(text, database, urlName string) (side, error) {
	if table, ok := strings.CutPrefix(text, tableMark); ok {
		if table == "" {
			return side{}, usagef("%s: which table? such as table:people", text)
		}
		return side{table: table, database: database}, nil
	}
	url, table, ok := strings.Cut(text, "#")
	if scheme, _, isURL := strings.Cut(url, ":"); !isURL || !slices.Contains([]string{"sqlite", "postgres", "postgresql", "mysql"}, scheme) {
		name, err := core.PathText("", text)
		if err != nil {
			return side{}, usage(err)
		}
		if !urlpath.Is(text) {
			name = text
		}
		return side{file: name}, nil
	}
	if !ok || table == "" {
		return side{}, usagef("%s: which table? such as sqlite:shop.db#people", secret.Text(text))
	}
	flag := settings.Flag{Name: "--database-url", Key: "databases." + urlName + ".url", Value: url}
	if urlName != tx.Default {
		flag.Name = urlName
	}
	c.env.flags = append(c.env.flags, flag)
	return side{table: table, database: urlName}, nil
}

func (c fileCommands) source(text, database string) (side, error) {
	return c.parseSide(text, database, "from")
}

func (c fileCommands) infer(ctx context.Context, from side, sample sample) (*draft.Shape, error) {
	if from.table != "" {
		return c.inferTable(ctx, from, sample)
	}
	if len(sample.key) > 0 {
		return nil, usagef("--key is for a table: a file is read from its beginning")
	}
	ctx, err := placeCommands(c).in(ctx, from.file)
	if err != nil {
		return nil, err
	}
	shape, err := draft.Infer(ctx, from.file, sample.Options)
	if err != nil {
		return nil, usage(err)
	}
	return shape, nil
}

func (c fileCommands) inferTable(ctx context.Context, from side, sample sample) (shape *draft.Shape, err error) {
	if words := sample.onlyOfFiles(); len(words) > 0 {
		return nil, usagef("%s is for a file: the types of a table are those of its columns", words[0])
	}
	if err := c.env.checkDatabase(from.database); err != nil {
		return nil, err
	}
	where := c.env.databaseText(from.database)
	if c.env.isAbsent(from.database) {
		return nil, usagef("%s does not exist", where)
	}
	err = c.env.withRawSession(ctx, c.env.observer(), func(s *Session) error {
		db, err := s.Provider.Database(from.database)
		if err != nil {
			return err
		}
		if shape, err = draft.InferTable(ctx, db, from.table); err != nil {
			return usage(fmt.Errorf("%s: %w", where, err))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if from.database != tx.Default {
		shape.Database = from.database
	}
	if err := shape.Along(sample.key); err != nil {
		return nil, usage(err)
	}
	return shape, nil
}

func (c fileCommands) inferred(ctx context.Context, text, database string, sample sample) (*draft.Shape, error) {
	from, err := c.source(text, database)
	if err != nil {
		return nil, err
	}
	if from.table != "" {
		if err := c.env.configure(); err != nil {
			return nil, err
		}
	}
	return c.infer(ctx, from, sample)
}

func addDatabaseFlag(cmd *cobra.Command, database *string, usage string) {
	cmd.Flags().StringVar(database, "database", tx.Default, usage)
}

func (c fileCommands) inferCommand() *cobra.Command {
	var look sample
	var database string
	cmd := &cobra.Command{
		Use:   "infer SOURCE",
		Short: "Infer the fields and types of a csv, json or jsonl file, or of a table",
		Long: `Prints the fields of SOURCE as an item type of a job file. If SOURCE is a file, the reader
of its format reads all of it, or its first 64 MB. A field has a type only if that type gives
back every text of the file; else it is a string: 007, 1E5, an ambiguous date. Comments give
the reasons, and point to fields that a person should check. If SOURCE is table:NAME, a table
or view of --database, or DATABASE_URL#TABLE, the types come from the database's catalogue.`,
		Example: "  " + c.env.app.Name + " infer orders.csv\n  " + c.env.app.Name + " infer table:people --database shop",
		Args:    exactly(1, "which file, or which table:NAME?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := look.check(cmd); err != nil {
				return err
			}
			shape, err := c.inferred(cmd.Context(), args[0], database, look)
			if err != nil {
				return err
			}
			if c.env.format == formatJSON {
				return c.env.printJSON(shape)
			}
			return c.env.print("# " + shape.Summary() + "\n" + shape.Comments() + "item:\n" + shape.Item("  "))
		},
	}
	look.addFlags(cmd)
	addDatabaseFlag(cmd, &database, "`NAME` of the database of table:NAME")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c fileCommands) initCommand() *cobra.Command {
	var look sample
	var dir, database string
	var force bool
	var parallel int
	cmd := &cobra.Command{
		Use:   "init SOURCE",
		Short: "Write a job that loads a csv, json or jsonl file, or exports a table, and a test of it",
		Long: `Infers the fields of a file, and writes a job that loads it into a table, the migration
that creates the table, and a test. For table:NAME, a table of --database, it writes a
job that exports it to a csv file, and a test if the database is the default one. The
files run as they are. An existing file is replaced only with --force.

"init app NAME" writes a Go program instead, with components of its own.`,
		Example: "  " + c.env.app.Name + " init orders.csv\n  " + c.env.app.Name + " test orders_test.yaml\n  " + c.env.app.Name + " run orders.yaml\n  " + c.env.app.Name + " init table:people",
		Args:    exactly(1, "which file, or which table:NAME?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := look.check(cmd); err != nil {
				return err
			}
			if parallel < 1 {
				return usagef("--parallel %d: at least 1", parallel)
			}
			if strings.Contains(args[0], "#") && !strings.HasPrefix(args[0], tableMark) {
				if from, err := c.source(args[0], database); err != nil || from.table != "" {
					return usagef("a job names its database: give it a name in %s, and say table:NAME --database DATABASE", settings.FileName)
				}
			}
			shape, err := c.inferred(cmd.Context(), args[0], database, look)
			if err != nil {
				return err
			}
			return c.start(shape, dir, parallel, force)
		},
	}
	look.addFlags(cmd)
	addDatabaseFlag(cmd, &database, "`NAME` of the database of table:NAME")
	cmd.Flags().StringVar(&dir, "dir", ".", "the `FOLDER` of the job")
	cmd.Flags().BoolVar(&force, "force", false, "replace existing files")
	cmd.Flags().IntVar(&parallel, "parallel", 1, "the job loads `N` parts of the file at once")
	cmd.AddCommand(c.initAppCommand())
	return cmd
}

func (c fileCommands) start(shape *draft.Shape, dir string, parallel int, force bool) error {
	input := ""
	if shape.Table == "" {
		var err error
		if input, err = relativeTo(dir, shape.Path); err != nil {
			return usage(err)
		}
	}
	files, err := shape.Start(input, parallel)
	if err != nil {
		return usage(err)
	}
	text, err := writeDraft(files, dir, force)
	if err != nil {
		return err
	}
	job := filepath.Join(dir, files[0].Path)
	if len(files) > 1 {
		text += "\ntest it:  " + c.env.app.Name + " test " + strings.TrimSuffix(job, ".yaml") + "_test.yaml"
	}
	return c.env.print(text + "\nrun it:   " + c.env.app.Name + " run " + job + "\n")
}

// writeDraft writes all files, or none if one already exists.
func writeDraft(files []draft.File, dir string, force bool) (paths string, err error) {
	var there []error
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Path))); err == nil && !force {
			there = append(there, fmt.Errorf("%s is there already", filepath.Join(dir, f.Path)))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			there = append(there, err)
		}
	}
	if len(there) > 0 {
		return "", usage(errors.Join(there...), "replace them:  --force", "write elsewhere:  --dir FOLDER")
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a project's folder
			return "", usage(err)
		}
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil { //nolint:gosec // a project's file
			return "", usage(err)
		}
		paths += path + "\n"
	}
	return paths, nil
}

func relativeTo(dir, path string) (string, error) {
	if urlpath.Is(path) {
		return path, nil
	}
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}
