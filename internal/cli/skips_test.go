package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

// skipJob skips in every phase: a non-numeric id cannot be read, an invalid
// code cannot be processed, and an existing id cannot be written.
const skipJob = `job: load
parameters:
  input: {type: path, default: numbers.csv}
  least: {type: int, default: 0, identifying: false}
flow:
- step: before
  tasklet: nothing
- step: load
  chunk:
    size: 4
    skip: 10
    reader: {csv: {path: "${params.input}", item: {id: int, code: {type: string, from: The Code}}}}
    processor: {filter: "int(item.code) >= params.least"}
    writer: {table: numbers}
- step: after
  tasklet: nothing
`

const skipNumbers = "id,The Code\n1,10\n2,20\n3,x\nfour,40\n5,50\n6,-1\n7,70\n8,y\n9,90\n10,100\n"

// skipScene has run skipJob: items 3 and 8 are skipped by the processor, line 5 by the reader, and
// item 7 by the writer, because of an existing row.
func skipScene(t *testing.T, url string) *scene {
	t.Helper()
	s := newScene(t, url, map[string]string{"load.yaml": skipJob, "numbers.csv": skipNumbers})
	s.must("sql", "--write", "create table numbers (id int primary key, code text)")
	s.must("sql", "--write", "insert into numbers values (7, 'old')")
	s.must("migrate")
	r := s.must("run", "load.yaml")
	require.Contains(t, r.out, "load COMPLETED 9 of 10 5 1 4 ")
	require.Contains(t, r.out, "\nskipped items: surfin skips list 1 --database-url ")
	return s
}

func (s *scene) must(args ...string) result {
	s.t.Helper()
	r := s.run(args...)
	require.Equal(s.t, cli.ExitCompleted, r.code, "%v: %s", args, r.err)
	return r
}

func (s *scene) rows() []string {
	s.t.Helper()
	var rows []struct {
		ID   int
		Code string
	}
	require.NoError(s.t, json.Unmarshal([]byte(s.must("sql", "select id, code from numbers order by id", "--format", "json").out), &rows))
	list := make([]string, len(rows))
	for i, r := range rows {
		list[i] = fmt.Sprintf("%d=%s", r.ID, r.Code)
	}
	return list
}

func TestSkippedItemsAreListedAndShown(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := skipScene(t, url)
		r := s.must("skips", "list", "1")
		lines := strings.Split(r.out, "\n")
		require.Equal(t, "id step phase where class error redriven by", lines[0])
		require.Regexp(t, `^ 1 load process DIR/numbers\.csv:4 \S+ .* -$`, lines[2])
		require.Regexp(t, `^ 2 load read DIR/numbers\.csv:5 \S+ .* -$`, lines[3])
		require.Regexp(t, `^ 3 load write DIR/numbers\.csv:8 \S+ .* -$`, lines[4])
		require.Regexp(t, `^ 4 load process DIR/numbers\.csv:9 \S+ .* -$`, lines[5])

		r = s.must("skips", "list", "1", "--phase", "process", "--step", "load", "--limit", "1")
		require.Contains(t, r.out, "\n 1 load process ")
		require.NotContains(t, r.out, "\n 4 load process ")
		require.Contains(t, r.err, "INFO there are more: --after 1\n")
		require.Contains(t, s.must("skips", "list", "1", "--phase", "process", "--after", "1").out, "\n 4 load process ")
		require.Empty(t, s.must("skips", "list", "1", "--step", "after").out)

		var list []struct {
			ID   int64
			Item json.RawMessage
			Raw  string
		}
		require.NoError(t, json.Unmarshal([]byte(s.must("skips", "list", "1", "--format", "json").out), &list))
		require.Len(t, list, 4)
		require.JSONEq(t, `{"id":3,"The Code":"x"}`, string(list[0].Item))
		require.Equal(t, "null", string(list[1].Item))
		require.Equal(t, "four,40", list[1].Raw)

		r = s.must("skips", "show", "3")
		for _, want := range []string{
			"skipped item 3 of execution 1, step load, phase write\n", "\nwhere DIR/numbers.csv:8\n", "\nerror ", "\nskipped TIME\n",
			"{\n \"id\": 7,\n \"The Code\": \"70\"\n}\n", "\nredrive it: surfin skips redrive 1 --step load --database-url ",
		} {
			require.Contains(t, r.out, want)
		}
		require.Contains(t, s.must("skips", "show", "2").out, "\ntext 7 bytes from byte 26 on\n\nfour,40\n\n column field\n─\n1 id four <- the mistake\n2 The Code 40\n\nredrive it")

		for args, want := range map[string]string{
			"list 9": "no execution 9 in", "show 9": "no skipped item 9 in", "show x": `"x" is not a skipped item`,
			"list 1 --phase other": "allowed: read, process, write", "list": "which execution?", "show": "which skipped item?",
		} {
			r := s.run(append([]string{"skips"}, strings.Fields(args)...)...)
			require.Equal(t, cli.ExitUsage, r.code)
			require.Contains(t, r.err, want)
		}
	})
}

func TestARedriveWritesExactlyWhatWasSkippedAndTheHistoryLinksBoth(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := skipScene(t, url)
		written := []string{"1=10", "10=100", "2=20", "5=50", "7=old", "9=90"}
		require.ElementsMatch(t, written, s.rows())

		s.must("sql", "--write", "delete from numbers where id = 7") // fixes the data
		r := s.must("skips", "redrive", "1")
		require.Contains(t, r.out, "job load, execution 2: COMPLETED in TOOK\n")
		require.Contains(t, r.out, "load COMPLETED 3 of 4 1 0 3 ", "items 3 and 8 and line 5 are as wrong as they were")
		require.NotContains(t, r.out, "before")
		require.NotContains(t, r.out, "after")
		require.ElementsMatch(t, []string{"1=10", "10=100", "2=20", "5=50", "7=70", "9=90"}, s.rows())

		r = s.must("show", "1")
		require.Contains(t, r.out, "\nredriven by execution 2 (COMPLETED)\n")
		r = s.must("show", "2")
		require.Contains(t, r.out, "\nredrive of step load of execution 1 (number 1)\n")
		require.NotContains(t, r.out, "run.redrive")
		require.Contains(t, s.must("skips", "list", "1", "--phase", "write").out, " 2\n", "redriven by execution 2")
		require.NotContains(t, s.must("skips", "list", "1", "--left").out, "write")
		var record struct {
			RedriveOf  int   `json:"redrive_of"`
			RedrivenBy []int `json:"redriven_by"`
		}
		require.NoError(t, json.Unmarshal([]byte(s.must("show", "1", "--format", "json").out), &record))
		require.Equal(t, []int{2}, record.RedrivenBy)
		require.NoError(t, json.Unmarshal([]byte(s.must("show", "2", "--format", "json").out), &record))
		require.Equal(t, 1, record.RedriveOf)

		s.write("load.yaml", strings.Replace(skipJob, "int(item.code) >= params.least", "item.id >= params.least", 1)) // fixes the job
		r = s.must("skips", "redrive", "1", "least=4")
		require.Contains(t, r.err, "WARN the job file has changed since execution 1 compare=")
		require.Contains(t, r.out, "job load, execution 3: COMPLETED in TOOK\n")
		require.Contains(t, r.out, "load COMPLETED 2 of 3 1 1 1 ", "one is filtered now: that is a verdict too")
		require.ElementsMatch(t, []string{"1=10", "10=100", "2=20", "5=50", "7=70", "8=y", "9=90"}, s.rows())

		require.Contains(t, s.must("show", "1").out, "\nredriven by execution 2 (COMPLETED), execution 3 (COMPLETED)\n")

		s.write("load.yaml", strings.NewReplacer("item: {id: int,", "item: {id: {type: int null, null_if: [four]},", "int(item.code) >= params.least", "(item.id ?? 0) > 0").Replace(skipJob)) // fixes the reader
		r = s.must("skips", "redrive", "1")
		require.Contains(t, r.out, "load COMPLETED 1 0 1 0 ", "the line is read by the reader as it is now")
		require.ElementsMatch(t, []string{"1=10", "10=100", "2=20", "5=50", "7=70", "8=y", "9=90"}, s.rows())
	})
}

func TestAnEditedExportIsRedrivenAsItIsWritten(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := skipScene(t, url)
		out := s.path("skipped.jsonl")
		r := s.must("skips", "export", "1", "--out", out)
		require.Empty(t, r.out)
		require.Contains(t, r.err, "INFO 4 skipped items exported\n")
		r = s.run("skips", "export", "1", "--out", out)
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "the file is there already")
		data, err := os.ReadFile(out)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		require.Len(t, lines, 4)
		require.Contains(t, lines[0], `"item":{"id":3,"The Code":"x"}`)
		require.Contains(t, lines[1], `"item":null,"raw":"four,40","columns":["id","The Code"],"offset":26,"length":7`)
		require.Len(t, strings.Split(strings.TrimSpace(s.must("skips", "export", "1", "--phase", "process").out), "\n"), 2)

		lines[0] = strings.Replace(lines[0], `"The Code":"x"`, `"The Code":"30"`, 1)
		s.write("skipped.jsonl", strings.Join(lines[:3], "\n"))
		for raw, want := range map[string]string{
			`"item":{"id":4},"raw":"5,50"`: "the file has both the item and a changed text: remove one of them",
		} {
			wrong := strings.Replace(lines[1], `"item":null,"raw":"four,40"`, raw, 1)
			s.write("skipped.jsonl", strings.Join([]string{lines[0], wrong, lines[2]}, "\n"))
			r = s.run("skips", "redrive", "1", "--from", out)
			require.Equal(t, cli.ExitUsage, r.code)
			require.Equal(t, "surfin: skipped item 2: "+want+"\n", strings.TrimPrefix(r.err[strings.Index(r.err, "surfin:"):], "INFO"))
			require.NotContains(t, s.must("list").out, " 2 load", "nothing was launched")
		}

		lines[1] = strings.Replace(lines[1], `"raw":"four,40"`, `"raw":"4,40"`, 1)
		s.write("skipped.jsonl", strings.Join(lines[:2], "\n")+"\n\n")
		r = s.must("skips", "redrive", "1", "--from", out)
		require.Contains(t, r.out, "load COMPLETED 2 2 0 0 ")
		require.ElementsMatch(t, []string{"1=10", "10=100", "2=20", "3=30", "4=40", "5=50", "7=old", "9=90"}, s.rows())

		r = s.run("skips", "redrive", "1", "--from", out)
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "surfin: skipped item 1: execution 2 has redriven it\nsurfin: skipped item 2: execution 2 has redriven it\n")
		require.Len(t, strings.Split(strings.TrimSpace(s.must("skips", "export", "1").out), "\n"), 2, "what is left")
	})
}

func TestAnExportThatIsBrokenIsRefusedWithItsLines(t *testing.T) {
	t.Parallel()
	s := skipScene(t, testdb.SQLite(t))
	file := s.path("x.jsonl")
	for text, want := range map[string]string{
		"":                                   "no skipped item found",
		"{\"id\":1,\"item\":{}}\n{\"id\":1}": "x.jsonl:2: skipped item 1 is already in line 1",
		"{\"id\":1}\n{\"id\":2":              "x.jsonl:2: not a line of an export",
		`{"id":1,"itme":{}}`:                 `unknown field "itme"`,
		`{"item":{}}`:                        `"id" is missing`,
		`{"id":1,"item":{}} {}`:              "unexpected text after the JSON object",
		`{"id":77,"item":{}}`:                "skipped item 77: not found",
	} {
		s.write("x.jsonl", text)
		r := s.run("skips", "redrive", "1", "--from", file)
		require.Equal(t, cli.ExitUsage, r.code, text)
		require.Contains(t, r.err, want)
	}
	s.write("x.jsonl", `{"id":1,"item":{"id":"three","The Code":"30"}}`)
	r := s.must("skips", "redrive", "1", "--from", file)
	require.Contains(t, r.out, "load COMPLETED 0 of 1 0 0 1 ", "an item that does not fit its type is skipped again")
	require.Contains(t, s.must("skips", "list", "1", "--left").out, "\n 1 load process ")
}

func TestARedriveThatFailedGoesOnWithWhatIsLeft(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"load.yaml": strings.Replace(skipJob, "size: 4", "size: 1", 1),
			"numbers.csv": "id,The Code\n1,x\n2,y\n3,z\n4,w\n"})
		s.must("sql", "--write", "create table numbers (id int primary key, code text)")
		s.must("sql", "--write", "insert into numbers values (2, 'old'), (3, 'old')")
		s.must("migrate")
		s.must("run", "load.yaml")
		s.write("load.yaml", strings.NewReplacer("size: 4", "size: 1", "skip: 10", "skip: 1", "int(item.code)", "item.id").Replace(skipJob))

		r := s.run("skips", "redrive", "1")
		require.Equal(t, cli.ExitFailed, r.code)
		require.Contains(t, r.err, "skip limit of 1 exceeded")
		require.Contains(t, r.err, "\n restart it: surfin skips redrive 1 --step load --database-url ")
		require.Equal(t, []string{"1=x", "2=old", "3=old"}, s.rows())
		r = s.run("restart", "2")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "execution 2 is a redrive of execution 1: continue it with a redrive\n continue: surfin skips redrive 1 --step load ")
		r = s.run("skips", "redrive", "2")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "execution 2 is itself a redrive: redrive the items that it skipped from execution 1")
		again := strings.Fields(strings.SplitN(s.must("skips", "list", "2").out, "\n", 4)[2])[0]
		require.Contains(t, s.must("skips", "show", again).out, "redrive it: surfin skips redrive 1 --step load ", "an item that a redrive skipped again")

		s.must("sql", "--write", "delete from numbers where code = 'old'")
		r = s.must("skips", "redrive", "1")
		require.Contains(t, r.out, "job load, execution 3 (attempt 2): COMPLETED", "the same instance goes on")
		require.Contains(t, r.out, "load COMPLETED 3 3 0 0 ")
		require.Equal(t, []string{"1=x", "2=y", "3=z", "4=w"}, s.rows())
		r = s.run("skips", "redrive", "1")
		require.Equal(t, cli.ExitRefused, r.code)
		require.Contains(t, r.err, "surfin: execution 1: no skipped items are left to redrive\n")
	})
}

func TestARedriveAsksWhichStepAndFindsTheJobFileInTheHistory(t *testing.T) {
	t.Parallel()
	two := `job: two
flow:
- step: one
  chunk: {skip: 5, reader: {csv: in.csv}, processor: {filter: int(item.a) > 0}, writer: {csv: one.csv}}
- step: other
  chunk: {skip: 5, reader: {csv: in.csv}, processor: {filter: int(item.a) > 0}, writer: {csv: "other-${steps.one.read}.csv"}}
`
	s := newScene(t, testdb.SQLite(t), map[string]string{"two.yaml": two, "in.csv": "a,b\n1,x\ny,z\n2,w\n"})
	s.must("run", "two.yaml")
	r := s.run("skips", "redrive", "1")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "skipped items of more than one step are left: one, other\n one of them: surfin skips redrive 1 --step one ")

	require.NoError(t, os.Remove(s.path("two.yaml")))
	r = s.run("skips", "redrive", "1", "--step", "one")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "WARN the job file is gone: the history's copy is used file=DIR/two.yaml\n")
	require.Contains(t, r.err, "DIR/one.csv exists, and a redrive would replace it with the r")

	require.NoError(t, os.Rename(s.path("one.csv"), s.path("one.before")))
	s.write("fixed.jsonl", `{"id":1,"item":{"a":"7","b":"z"}}`)
	r = s.must("skips", "redrive", "1", "--step", "one", "--from", s.path("fixed.jsonl"))
	require.Contains(t, r.out, "one COMPLETED 1 1 0 0 ")
	data, err := os.ReadFile(s.path("one.csv"))
	require.NoError(t, err)
	require.Equal(t, "a,b\n7,z\n", string(data))
	require.NoError(t, os.Rename(s.path("other-3.csv"), s.path("other.before")))
	s.write("fixed.jsonl", `{"id":2,"item":{"a":"8","b":"z"}}`)
	s.must("skips", "redrive", "1", "--from", s.path("fixed.jsonl"))
	data, err = os.ReadFile(s.path("other-3.csv"))
	require.NoError(t, err, "the steps of the execution are known to the redrive")
	require.Equal(t, "a,b\n8,z\n", string(data))
	r = s.run("skips", "redrive", "1", "--step", "none")
	require.Equal(t, cli.ExitRefused, r.code)
}

func TestTheSkipsOfAnotherAttemptAreNamed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := skipScene(t, url)
		require.NotContains(t, s.must("skips", "list", "1").err, "another attempt")
		s.write("fails.yaml", "job: fails\nflow:\n- step: load\n  chunk:\n    skip: 10\n    reader: {csv: {path: numbers.csv, item: {id: int}}}\n    writer: {table: {name: ids, create: true}}\n- {step: last, tasklet: panic}\n")
		require.Equal(t, cli.ExitFailed, s.run("run", "fails.yaml").code)
		require.Equal(t, cli.ExitFailed, s.run("run", "fails.yaml").code)
		require.Contains(t, s.must("skips", "list", "2").out, "parse")
		require.Contains(t, s.must("skips", "list", "3").err, "no such skipped items of execution 3; another attempt has some: surfin skips list 2")
	})
}

func TestItemsAreRedrivenByTheTypesOfACorrectedJob(t *testing.T) {
	t.Parallel()
	const job = "job: o\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: o.csv, item: {id: TYPE, amount: TYPE null, open: OPEN}}}\n" +
		"    processor: {filter: \"RULE\"}\n    writer: {table: {name: o, create: true}}\n    skip: 10\n"
	wrong := strings.NewReplacer("TYPE", "string", "OPEN", "string", "RULE", "int(item.open) > 0").Replace(job)
	right := strings.NewReplacer("TYPE", "int", "OPEN", "bool", "RULE", "item.id > 0").Replace(job)
	for name, c := range map[string]struct{ before, after string }{"to numbers": {wrong, right}, "to texts": {
		strings.Replace(right, "item.id > 0", "div(1, item.id - item.id) > 0", 1), strings.Replace(wrong, "int(item.open) > 0", "item.open != ''", 1),
	}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				s := newScene(t, url, map[string]string{"o.yaml": c.before, "o.csv": "id,amount,open\n1,5,true\n2,10,false\n"})
				s.must("migrate")
				s.must("run", "o.yaml")
				s.write("o.yaml", c.after)
				s.must("sql", "--write", "drop table o")
				require.Contains(t, s.must("skips", "redrive", "1").out, "load COMPLETED 2 2 0 0 ")
				require.Regexp(t, `\n *1 +5\n *2 +10\n`, s.must("sql", "select id, amount from o order by id").out)
			})
		})
	}
}
