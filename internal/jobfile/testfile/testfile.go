// Package testfile reads the files in which tests of jobs are written: YAML, as strict as a
// job file. Package jobtest runs them.
//
// It imports internal/yamlfile and the standard library.
package testfile

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// File is a file of tests.
type File struct {
	// Path is the file as given; Job is the job file's path, from the working directory.
	Path      string            `key:"-"`
	Job       string            `key:"job" required:"true" doc:"The job file, relative to this one; or the name of a job that the program has in it, such as one in Go."`
	Name      string            `key:"-"`
	Databases map[string]string `key:"databases" doc:"The databases of the job by their names: sqlite, a URL postgres://..., or env:NAME, a variable of the environment that has such a URL. In PostgreSQL each test has a schema of its own, which is dropped afterwards. Without it: default, on SQLite."`
	Tests     []Test            `key:"tests" required:"true" doc:"Each runs the job in a temporary folder, on fresh databases."`
}

// Test is one run of the job with its expected results.
type Test struct {
	Name   string             `key:"name" required:"true" doc:"What holds."`
	Params map[string]string  `key:"params" doc:"Parameters of the job; paths are relative to the temporary folder."`
	With   []string           `key:"with" doc:"Files and folders beside the job file that are copied: migrations, child jobs, data."`
	Files  map[string]Content `key:"files" doc:"Files that are written first: text, or rows as csv, json or jsonl by the suffix."`
	SQL    string             `key:"sql" doc:"Statements that make the tables that must be there."`
	Tables map[string]Rows    `key:"tables" doc:"Rows that are inserted first."`
	In     map[string]Data    `key:"in" doc:"The same for other databases than default, by name: sql and tables."`
	Expect Expect             `key:"expect" doc:"What must come of the run."`
}

// Expect lists the expected results of a run. Results without an expectation are not
// checked.
type Expect struct {
	Status  string             `key:"status" default:"COMPLETED" doc:"The status of the job."`
	Exit    string             `key:"exit" doc:"Its exit code."`
	Error   string             `key:"error" doc:"A part of its error."`
	Steps   map[string]Counts  `key:"steps" doc:"Numbers of steps."`
	Tables  map[string]Rows    `key:"tables" doc:"All rows of a table, in any order; only the columns that are named count."`
	Queries map[string]Rows    `key:"queries" doc:"A query, and all of its rows, in any order."`
	In      map[string]Found   `key:"in" doc:"The same for other databases than default, by name: tables and queries."`
	Files   map[string]Content `key:"files" doc:"Files that must be there: their text, or rows, in order."`
	Skips   *[]Skip            `key:"skips" doc:"All skipped items, in any order; [] for none."`
}

// Data is the content of a database before the run.
type Data struct {
	SQL    string          `key:"sql" doc:"Statements that make the tables that must be there."`
	Tables map[string]Rows `key:"tables" doc:"Rows that are inserted first."`
}

// Found is the expected content of a database afterwards.
type Found struct {
	Tables  map[string]Rows `key:"tables" doc:"All rows of a table, in any order; only the columns that are named count."`
	Queries map[string]Rows `key:"queries" doc:"A query, and all of its rows, in any order."`
}

// Counts are numbers of a step; nil means not checked.
type Counts struct {
	Status   string `key:"status"`
	Read     *int64 `key:"read"`
	Written  *int64 `key:"written"`
	Filtered *int64 `key:"filtered"`
	Skipped  *int64 `key:"skipped"`
}

// Skip is a skipped item; zero fields are not compared.
type Skip struct {
	Step  string `key:"step"`
	Phase string `key:"phase" enum:"read,process,write"`
	File  string `key:"file" doc:"The name of the file, without its folder."`
	Line  int64  `key:"line"`
	Index int64  `key:"index"`
	Row   int64  `key:"row"`
	Error string `key:"error" doc:"A part of the error."`
}

// Cell is a value of a row, as text; Null means that there is none.
type Cell struct {
	Name, Text string
	Null       bool
	Quoted     bool // it is written as a text
}

// Rows are rows of named values, in the order of the file.
type Rows struct{ List [][]Cell }

// Content is the content of a file: text, or rows.
type Content struct {
	Text   string
	Rows   Rows
	IsRows bool
}

// Load reads a file of tests and reports all mistakes.
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the tests: %w", err)
	}
	doc, problems := yamlfile.Parse(path, text)
	f := &File{Path: path}
	if doc.Root != nil {
		d := &yamlfile.Decoder{Collector: problems, Forms: map[reflect.Type]yamlfile.Form{
			reflect.TypeFor[Rows]():    decodeRows,
			reflect.TypeFor[Content](): decodeContent,
		}}
		d.Decode(doc.Root, "the file", reflect.ValueOf(f).Elem())
		checkNames(d, doc.Root, f)
		checkDatabases(d, doc.Root, f)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	f.Name = f.Job
	if !filepath.IsAbs(f.Job) {
		f.Job = filepath.Join(filepath.Dir(path), filepath.FromSlash(f.Job))
	}
	return f, nil
}

func checkNames(d *yamlfile.Decoder, root *yamlfile.Node, f *File) {
	if tests := root.Get("tests"); tests != nil && tests.Kind == yamlfile.List && len(tests.Items) == 0 {
		d.Add(tests, "there is no test", "write at least one")
	}
	seen := map[string]bool{}
	for i, t := range f.Tests {
		if seen[t.Name] {
			d.Add(root.Get("tests").Items[i], fmt.Sprintf("the name %q appears twice", t.Name), "give each test its own name")
		}
		seen[t.Name] = true
	}
}

// FromEnvironment is the prefix of a database URL in an environment variable.
const FromEnvironment = "env:"

func checkDatabases(d *yamlfile.Decoder, root *yamlfile.Node, f *File) {
	list := root.Get("databases")
	for name, url := range f.Databases {
		if url != "sqlite" && !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") &&
			(!strings.HasPrefix(url, FromEnvironment) || url == FromEnvironment) {
			d.Add(list.Get(name), fmt.Sprintf("database %s: %q is not a database for tests", name, secret.Text(url)), "sqlite, postgres://USER@HOST/NAME, or env:NAME of a variable that has such a URL")
		}
	}
	check := func(in *yamlfile.Node) {
		if in == nil || in.Kind != yamlfile.Map {
			return
		}
		for _, e := range in.Entries {
			if _, known := f.Databases[e.Key.Text]; !known {
				d.Add(e.Key, fmt.Sprintf("there is no database %s", e.Key.Text), "name it in databases, at the top of the file")
			}
		}
	}
	tests := root.Get("tests")
	if tests == nil || tests.Kind != yamlfile.List {
		return
	}
	for _, one := range tests.Items {
		if one.Kind != yamlfile.Map {
			continue
		}
		check(one.Get("in"))
		if expect := one.Get("expect"); expect != nil && expect.Kind == yamlfile.Map {
			check(expect.Get("in"))
		}
	}
}

func decodeRows(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if rows, ok := readRows(d, n, f); ok {
		v.Set(reflect.ValueOf(rows))
	}
}

func readRows(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) (rows Rows, ok bool) {
	if !d.Expect(n, yamlfile.List, f) {
		return rows, false
	}
	rows.List = [][]Cell{}
	for _, item := range n.Items {
		if !d.Expect(item, yamlfile.Map, f) {
			return rows, false
		}
		var cells []Cell
		for _, e := range item.Entries {
			if !d.Expect(e.Value, yamlfile.Scalar, f) {
				return rows, false
			}
			null := e.Value.Empty || !e.Value.IsQuoted() && (e.Value.Text == "null" || e.Value.Text == "~")
			cells = append(cells, Cell{Name: e.Key.Text, Text: e.Value.Text, Null: null, Quoted: e.Value.IsQuoted()})
		}
		rows.List = append(rows.List, cells)
	}
	return rows, true
}

func decodeContent(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if n.Kind == yamlfile.Scalar {
		v.Set(reflect.ValueOf(Content{Text: n.Text}))
		return
	}
	if rows, ok := readRows(d, n, f); ok {
		v.Set(reflect.ValueOf(Content{Rows: rows, IsRows: true}))
	}
}
