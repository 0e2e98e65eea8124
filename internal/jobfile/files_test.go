package jobfile_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// These tests are about rule C15b: a file belongs to one writer.

func TestAFileOfTwoWritersIsRefusedAtLoad(t *testing.T) {
	t.Parallel()
	_, err := jobfile.Parse("job.yaml", []byte(`job: files
parameters:
  out: {type: path, default: out.csv}
flow:
- step: twice
  chunk:
    reader: {csv: in.csv}
    writer:
    - csv: {path: a.csv}
    - jsonl: ./a.csv
- step: itself
  chunk:
    reader: {csv: in.csv}
    writer: {csv: in.csv}
- step: parts
  partition: {by: {count: 3}}
  chunk:
    reader: {csv: in.csv}
    writer: {csv: "${params.out}"}
- split: both
  branches:
  - - {step: left, chunk: {reader: {csv: in.csv}, writer: {csv: "${params.out}"}}}
  - - flow: inner
      steps:
      - {step: right, chunk: {reader: {csv: in.csv}, writer: [{csv: b.csv}, {csv: "${params.out}"}]}}
- step: fine
  partition: {by: {count: 3}}
  chunk:
    reader: {csv: in.csv}
    writer: {csv: "out-${part.index}.csv"}
`), shipped(t))
	require.EqualError(t, err, `job.yaml:10:14: ./a.csv is also the file of writer csv in line 9
   10 |     - jsonl: ./a.csv
      |              ^ a file belongs to one writer, and is not read by its own step
job.yaml:14:19: in.csv is also the file of reader csv in line 13
   14 |     writer: {csv: in.csv}
      |                   ^ a file belongs to one writer, and is not read by its own step
job.yaml:19:19: all partitions would write ${params.out}
   19 |     writer: {csv: "${params.out}"}
      |                   ^ name the partition in it, as in out-${part.index}.csv, or write one file from all of them with together: true
job.yaml:25:83: ${params.out} is also written in another branch of split both, in line 22
   25 |       - {step: right, chunk: {reader: {csv: in.csv}, writer: [{csv: b.csv}, {csv: "${params.out}"}]}}
      |                                                                                   ^ branches run at once, and a file belongs to one writer`)
}

// Rule C15w.
func TestPartsWriteOneFileTogetherWhereTheyCan(t *testing.T) {
	t.Parallel()
	_, err := jobfile.Parse("job.yaml", []byte(`job: together
parameters: {both: {type: bool}, url: {type: string}}
flow:
- step: whole
  chunk:
    reader: {csv: in.csv}
    writer: {csv: {path: out.csv, together: true}}
- step: parts
  partition: {by: {count: 3}}
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer:
    - csv: {path: "out-${part.index}.csv", together: true}
    - jsonl: {path: a.jsonl, together: true, append: true}
    - lines: {path: -, together: true}
    - csv: {path: "s3://bucket/b.csv", together: true}
    - csv: {path: c.csv, together: "${params.both}"}
    - json: {path: d.json, together: true}
    - fixed: {path: e.dat, together: true, records: {D: {columns: {id: 2-9}}}}
- step: fine
  partition: {by: {count: 3}}
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer:
    - csv: {path: f.csv, together: true}
    - route:
      - {when: "part.index > 0", writer: {jsonl: {path: "${params.url}", together: true}}}
      - {writer: {fixed: {path: g.dat, together: true, columns: {id: 1-9}, trailer: {begins: T, sums: {id: 2-9}}}}}
`), shipped(t))
	require.EqualError(t, err, `job.yaml:7:35: together joins the parts of a partitioned step, but step whole has no partition
    7 |     writer: {csv: {path: out.csv, together: true}}
      |                                   ^ leave together out, or add partition
job.yaml:13:19: the partitions write one file together, so its path cannot depend on the partition
   13 |     - csv: {path: "out-${part.index}.csv", together: true}
      |                   ^ leave part out of out-${part.index}.csv, or leave out together
job.yaml:14:30: together and append cannot be combined: the file is joined from parts that do not know it
   14 |     - jsonl: {path: a.jsonl, together: true, append: true}
      |                              ^ leave one of them out
job.yaml:15:21: together is for files, but - is the standard output
   15 |     - lines: {path: -, together: true}
      |                     ^ name a file
job.yaml:16:19: path: this program is built without the place s3
   16 |     - csv: {path: "s3://bucket/b.csv", together: true}
      |                   ^ the released surfin has it; or build one: surfin build --with s3; or import github.com/surfin-batch/surfin/contrib/s3 and pass s3.Module() to the program
job.yaml:17:26: together cannot depend on values: the partitions are checked by it when the file is loaded
   17 |     - csv: {path: c.csv, together: "${params.both}"}
      |                          ^ write true or false
job.yaml:18:38: writer json: together: parts of a JSON array are not arrays: use jsonl, which has one value per line
   18 |     - json: {path: d.json, together: true}
      |                                      ^
job.yaml:19:38: writer fixed: together: headers and trailers of several record types belong to the records around them, so parts cannot be joined: write the file in a step without partitions
   19 |     - fixed: {path: e.dat, together: true, records: {D: {columns: {id: 2-9}}}}
      |                                      ^`)
}

// Rule P9: the partitioner that divides a file asks the reader for it, unless it has a path of its own.
func TestThePathOfAPartIsKnownWhereThePartitionerHasOne(t *testing.T) {
	t.Parallel()
	_, err := jobfile.Parse("job.yaml", []byte(`job: parts
parameters: {input: {type: path}}
flow:
- step: named
  partition: {by: {lines: {path: "${params.input}", parts: 2}}}
  chunk:
    reader: {csv: {path: "${part.path}", item: {id: int}}}
    writer: {csv: {path: a.csv, together: true}}
- step: asked
  partition: {by: {lines: 2}}
  chunk:
    reader: {csv: {path: "${part.path}", item: {id: int}}}
    writer: {csv: {path: b.csv, together: true}}
`), shipped(t))
	require.EqualError(t, err, `job.yaml:12:34: ${part.path}: part has no field path (there is index, name)
   12 |     reader: {csv: {path: "${part.path}", item: {id: int}}}
      |                                  ^`)
}

// Rule TW4.
func TestATableThatIsFilledAnewHasOneWriter(t *testing.T) {
	t.Parallel()
	_, err := jobfile.Parse("job.yaml", []byte(`job: tables
flow:
- step: twice
  chunk:
    reader: {csv: in.csv}
    writer:
    - table: people
    - table: {name: people, mode: truncate}
- step: parts
  partition: {by: {count: 3}}
  chunk:
    reader: {csv: in.csv}
    writer: {table: {name: people, mode: replace}}
- split: both
  branches:
  - - {step: left, chunk: {reader: {csv: in.csv}, writer: {table: {name: people, mode: replace}}}}
  - - {step: right, chunk: {reader: {csv: in.csv}, writer: {table: people}}}
  - - {step: other, chunk: {reader: {csv: in.csv}, writer: {table: places}}}
`), shipped(t))
	require.EqualError(t, err, `job.yaml:8:21: people is also written by writer table in line 7, and one of them refills it
    8 |     - table: {name: people, mode: truncate}
      |                     ^ give it one writer
job.yaml:13:42: mode replace in a partitioned step: each partition would remove the rows of the others
   13 |     writer: {table: {name: people, mode: replace}}
      |                                          ^ write it in a step without partitions, or empty the table in a step before, and insert
job.yaml:17:68: people is also written in another branch of split both, in line 16, and one of them refills it
   17 |   - - {step: right, chunk: {reader: {csv: in.csv}, writer: {table: people}}}
      |                                                                    ^ branches run at once: run one after the other`)
}

func TestAFileOfTwoWritersThatOnlyTheLaunchKnowsIsRefusedWhenItIsKnown(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		dir := t.TempDir()
		in := filepath.Join(dir, "in.csv")
		require.NoError(t, os.WriteFile(in, []byte("id\n1\n2\n"), 0o600))
		require.NoError(t, os.Symlink(dir, filepath.Join(dir, "link")))
		for _, c := range []struct{ name, text, want string }{
			{"two writers", `
- step: s
  chunk: {reader: {csv: in.csv}, writer: [{csv: "${params.a}"}, {csv: "${params.b}"}]}`,
				"step s: writer csv and writer csv have one file, " + filepath.Join(dir, "same.csv")},
			{"input and output", `
- step: s
  chunk: {reader: {csv: "${params.in}"}, writer: {csv: "${params.same}"}}`,
				"step s: reader csv and writer csv have one file, " + in},
			{"partitions", `
- step: s
  partition: {by: {count: 3}, workers: 1}
  chunk: {reader: {csv: in.csv}, writer: {csv: "out-${part.index % 2}.csv"}}`,
				"partitions 0 and 2 would both write " + filepath.Join(dir, "out-0.csv")},
		} {
			t.Run(c.name, func(t *testing.T) {
				path := filepath.Join(dir, "job.yaml")
				f, err := jobfile.Parse(path, []byte(`job: `+filepath.Base(t.Name())+`
parameters:
  a: {type: path, default: same.csv}
  b: {type: path, default: link/same.csv}
  in: {type: path, default: in.csv}
  same: {type: path, default: link/in.csv}
flow:`+c.text+"\n"), shipped(t))
				require.NoError(t, err)
				j, err := f.Compile(jobfile.Deps{Provider: e.Provider, Registry: shipped(t)})
				require.NoError(t, err)
				params, err := job.ValidateParameters(f.Parameters(), nil)
				require.NoError(t, err)
				exec, err := e.Launcher.Run(context.Background(), j, params, nil)
				require.NoError(t, err)
				require.Equal(t, core.StatusFailed, exec.Status)
				require.Contains(t, exec.Error, c.want)
			})
		}
		names, err := filepath.Glob(filepath.Join(dir, "*.csv*"))
		require.NoError(t, err)
		require.Equal(t, []string{in}, names, "nothing was written")
	})
}
