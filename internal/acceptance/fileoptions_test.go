package acceptance

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// fileRows is the number of rows in each file; a chunk has ten of them.
const fileRows = 400

type fileCase struct {
	name, file string
	keys       string // of the reader, after the path
	item       string // "" means id and name
	head, foot string
	line       func(i int) (text, name string) // nil means plainLine
	sql        string                          // the expression to compare with the name; "" means name
	pack       func(t *testing.T, text string) []byte
}

func plainLine(i int) (text, name string) {
	name = fmt.Sprintf("name %d", i)
	return fmt.Sprintf("%d,%s\n", i, name), name
}

func sameLine(text, name string) func(int) (string, string) {
	return func(i int) (string, string) {
		n := fmt.Sprint(i)
		return strings.ReplaceAll(text, "%d", n), strings.ReplaceAll(name, "%d", n)
	}
}

func oneOf(lines ...func(int) (string, string)) func(int) (string, string) {
	return func(i int) (string, string) { return lines[i%len(lines)](i) }
}

func fileCases() []fileCase {
	return []fileCase{
		{name: "report", keys: `skip_lines: 3, footer_lines: 2`, head: "Report\r\n\"odd\r\n\r\nid,name\r\n", foot: "Total,400\r\nend\r\n\r\n\r\n",
			line: sameLine("%d,\"a\r\nb%d\"\r\n", "a\r\nb%d")},
		{name: "footer", keys: `footer_lines: 1`, head: "id,name\n", foot: "Total,400\n\n\n"},
		{name: "footer_cr", keys: `footer_lines: 1`, head: "id,name\r", foot: "Total,400\r\r", line: sameLine("%d,n%d\r", "n%d")},
		{name: "comment", keys: `comment: "#"`, head: "# by hand\nid,name\n", line: sameLine("#%d,\"x\n%d,n%d\n", "n%d")},
		{name: "quote", keys: `quote: "'", escape: '\'`, head: "id,name\n", line: sameLine(`'%d','it\'s, \\ "%d"'`+"\n", `it's, \ "%d"`)},
		{name: "backslash", keys: `escape: '\'`, head: "id,name\n", line: sameLine(`%d,"a \"b"", %d`+"\n\"\n", `a "b", %d`+"\n")},
		{name: "no_quote", keys: `quote: none`, head: "id,name\n", line: sameLine("%d,\"6 inch %d\n", `"6 inch %d`)},
		{name: "lazy", keys: `lazy_quotes: true`, head: "id,name\n", line: sameLine("%d,6\" pipe %d\n", `6" pipe %d`)},
		{name: "bars", keys: `delimiter: "||"`, head: "id||name\n", line: sameLine("%d||a|b %d\n", "a|b %d")},
		{name: "blank_runs", keys: `delimiter: blanks`, head: "id   name\n", line: sameLine("%d \t  n%d\n", "n%d")},
		{name: "tabs", keys: `delimiter: tab, trim: true`, head: "id\tname\n", line: sameLine(" %d\t n%d \n", "n%d")},
		{name: "loose", keys: `delimiter: ";", header: loose, unknown: warn`, head: "\u00a0ID ;x; Na Me\n", line: sameLine("%d;;n%d\n", "n%d")},
		{name: "ragged", keys: `short: "null", long: ignore`, head: "id,name\n",
			line: oneOf(sameLine("%d\n", "null"), sameLine("%d,n%d,x,y\n", "n%d"), sameLine("%d,n%d\n", "n%d"))},
		{name: "marked", keys: `nulls: ["", NA]`, head: "id,name\n",
			line: oneOf(sameLine("%d,NA\n", "null"), sameLine("%d,\"NA\"\n", "NA"), sameLine("%d,\n", "null"), sameLine("%d,\"\"\n", ""))},
		{name: "headless", keys: `header: false, columns: 3`, item: `id: {type: int, exact: true}, name: string null`, line: sameLine("%d,n%d,x\n", "n%d")},
		{name: "sep", head: "sep=|\r\nid|name\r\n", line: sameLine("%d|a,b %d\r\n", "a,b %d")},
		{name: "words", keys: `delimiter: ";"`, head: "id;name;paid;amount\n",
			item: `id: int, name: string, paid: {type: bool, true: [Ja], false: [Nein]}, amount: {type: decimal, thousands_separator: "'", trailing_minus: true}`,
			sql:  `name || case when paid and amount = -1234.5 then ' yes' when amount = 10000 then ' no' else ' wrong' end`,
			line: oneOf(sameLine("%d;n%d;Ja;1'234.50-\n", "n%d yes"), sameLine("%d;n%d;Nein;10'000\n", "n%d no"))},
	}
}

func packedFileCases() []fileCase {
	const head = "id,name\n"
	bom := unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	return []fileCase{
		{name: "shift_jis", keys: `encoding: shift-jis`, head: head, line: sameLine("%d,\"ソ表, %d\n\"\n", "ソ表, %d\n"), pack: encoded(japanese.ShiftJIS)},
		{name: "utf_16", keys: `encoding: utf-16, footer_lines: 1`, head: head, foot: "Total\n\n", line: sameLine("%d,\"ē 😀 %d\n\"\n", "ē 😀 %d\n"), pack: encoded(bom)},
		{name: "windows_1250", keys: `encoding: windows-1250, skip_lines: 1`, head: "č\n" + head, line: sameLine("%d,łódź %d\n", "łódź %d"), pack: encoded(charmap.Windows1250)},
		{name: "gz", file: ".csv.gz", head: head, pack: func(_ *testing.T, text string) []byte { return append(zipped(text[:1000]), zipped(text[1000:])...) }},
		{name: "zst", file: ".csv.zst", keys: `footer_lines: 1`, head: head, foot: "Total\n", pack: func(t *testing.T, text string) []byte {
			var b bytes.Buffer
			w, err := zstd.NewWriter(&b)
			return compressed(t, text, &b, w, err)
		}},
		{name: "bz2", file: ".csv.bz2", head: head, pack: func(t *testing.T, _ string) []byte { // Go writes none
			data, err := os.ReadFile("testdata/options.csv.bz2")
			require.NoError(t, err)
			return data
		}},
		{name: "xz", file: ".csv.xz", keys: `skip_lines: 1`, head: "x\n" + head, pack: func(t *testing.T, text string) []byte {
			var b bytes.Buffer
			w, err := xz.NewWriter(&b)
			return compressed(t, text, &b, w, err)
		}},
		{name: "zip", file: ".zip", keys: `member: "*.csv", encoding: utf-16`, head: head, pack: func(t *testing.T, text string) []byte {
			var b bytes.Buffer
			archive := zip.NewWriter(&b)
			_, err := archive.Create("a.txt")
			require.NoError(t, err)
			member, err := archive.Create("in/a.csv")
			require.NoError(t, err)
			_, err = member.Write(encoded(bom)(t, text))
			require.NoError(t, err)
			require.NoError(t, archive.Close())
			return b.Bytes()
		}},
	}
}

func encoded(e encoding.Encoding) func(*testing.T, string) []byte {
	return func(t *testing.T, text string) []byte {
		data, err := e.NewEncoder().Bytes([]byte(text))
		require.NoError(t, err)
		return data
	}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) //nolint:errcheck // a buffer
	_ = w.Close()                //nolint:errcheck // a buffer
	return b.Bytes()
}

func compressed(t *testing.T, text string, b *bytes.Buffer, w io.WriteCloser, err error) []byte {
	require.NoError(t, err)
	_, err = io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

type fileWriter struct {
	name, file     string
	writer, reader string // with PATH
	seed           string // the existing content of the file, the first rows, if the writer appends
}

const seedRows = 5

func fileWriters() []fileWriter {
	const item = `item: {id: int, name: string null}`
	seed := func(head string, line func(i int) string) string {
		for i := range seedRows {
			head += line(i)
		}
		return strings.TrimSuffix(head, "\n") // the writer ends the line
	}
	csvSeed := seed("id,name\n", func(i int) string { return fmt.Sprintf("%d,\"seed, %d\"\n", i, i) })
	return []fileWriter{
		{"write_gz", "out.csv.gz", `csv: {path: PATH}`, `csv: {path: PATH, ` + item + `}`, ""},
		{"write_zst", "out.csv.zst", `csv: {path: PATH, encoding: utf-16}`, `csv: {path: PATH, encoding: utf-16, ` + item + `}`, ""},
		{"write_form", "out.csv", `csv: {path: PATH, delimiter: "||", quote: "'", escape: '\', nulls: '\N', line_end: crlf, encoding: windows-1250}`,
			`csv: {path: PATH, delimiter: "||", quote: "'", escape: '\', nulls: ['\N'], encoding: windows-1250, ` + item + `}`, ""},
		{"write_all", "all.csv", `csv: {path: PATH, quote: all, delimiter: ";", header: false}`, `csv: {path: PATH, delimiter: ";", header: false, ` + item + `}`, ""},
		{"append_csv", "more.csv", `csv: {path: PATH, append: true}`, `csv: {path: PATH, ` + item + `}`, csvSeed},
		{"append_gz", "more.csv.gz", `csv: {path: PATH, append: true}`, `csv: {path: PATH, ` + item + `}`, csvSeed},
		{"append_jsonl", "more.jsonl", `jsonl: {path: PATH, append: true}`, `jsonl: {path: PATH, ` + item + `}`,
			seed("", func(i int) string { return fmt.Sprintf("{\"id\":%d,\"name\":\"seed, %d\"}\n", i, i) })},
		{"append_fixed", "more.dat", `fixed: {path: PATH, append: true, columns: {id: 1-5, name: 6-40}}`, `fixed: {path: PATH, columns: {id: 1-5, name: 6-40}, ` + item + `}`,
			seed("", func(i int) string { return fmt.Sprintf("%5d%-35s\n", i, fmt.Sprintf("seed, %d", i)) })},
		{"append_lines", "more.txt", `lines: {path: PATH, append: true}`, `csv: {path: PATH, header: false, delimiter: ";", ` + item + `}`,
			seed("", func(i int) string { return fmt.Sprintf("%d;\"seed, %d\"\n", i, i) })},
	}
}

func (c fileWriter) nasty(i int) string {
	switch {
	case c.seed != "" && i < seedRows:
		return fmt.Sprintf("seed, %d", i)
	case c.name == "append_fixed" || c.name == "append_lines": // neither has line ends or empty texts in a field
		return fmt.Sprintf("ä, %d", i)
	}
	return []string{"null", "", fmt.Sprintf(`it's "x", || \N %d`, i), fmt.Sprintf("ä;\r\nb %d\n", i)}[i%4]
}

func (c fileWriter) input() string {
	text := "id,name\n"
	if c.name == "append_lines" {
		text = "line\n"
	}
	for i := range fileRows {
		name := c.nasty(i)
		quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		switch {
		case c.seed != "" && i < seedRows:
		case c.name == "append_lines":
			text += fmt.Sprintf("%d;\"%s\"\n", i, name)
		case name == "null":
			text += fmt.Sprintf("%d,\n", i)
		default:
			text += fmt.Sprintf("%d,%s\n", i, quoted)
		}
	}
	return text
}

type fileTable struct {
	name, sql string
	rows      []string
}

// layFiles writes the files of all cases and the job that reads and writes them, with a step for each.
func (s *scene) layFiles() (tables []fileTable, steps []string) {
	s.t.Helper()
	var job strings.Builder
	job.WriteString("job: options\nparameters:\n  n: {type: int}\nflow:\n")
	step := func(name, reader, writer string) {
		steps = append(steps, name)
		fmt.Fprintf(&job, "- step: %s\n  chunk:\n    size: 10\n    reader: {%s}\n    writer: {%s}\n", name, reader, writer)
	}
	load := func(table, sql, reader string, name func(i int) string) {
		step("load_"+table, reader, fmt.Sprintf("table: {name: %s, create: true}", table))
		rows := make([]string, fileRows)
		for i := range rows {
			rows[i] = fmt.Sprintf("%d %s", i, name(i))
		}
		tables = append(tables, fileTable{table, sql, rows})
	}
	for _, c := range slices.Concat(fileCases(), packedFileCases()) {
		c = c.complete()
		text, names := c.head, make([]string, fileRows)
		for i := range fileRows {
			line, name := c.line(i)
			text, names[i] = text+line, name
		}
		data := []byte(text + c.foot)
		if c.pack != nil {
			data = c.pack(s.t, text+c.foot)
		}
		s.write(c.file, string(data))
		load(c.name, c.sql, fmt.Sprintf("csv: {path: %s, item: {%s}%s}", c.file, c.item, c.keys), func(i int) string { return names[i] })
	}
	for _, c := range fileWriters() {
		s.write("in_"+c.name, c.input())
		in := `item: {id: int, name: string null}`
		if c.name == "append_lines" {
			in = `quote: none, item: {line: string}`
		}
		switch {
		case strings.HasSuffix(c.file, ".gz") && c.seed != "":
			s.write(c.file, string(zipped(c.seed)))
		case c.seed != "":
			s.write(c.file, c.seed)
		}
		step(c.name, fmt.Sprintf("csv: {path: in_%s, %s%s}", c.name, map[bool]string{true: `delimiter: "\x01", `}[c.name == "append_lines"], in), strings.ReplaceAll(c.writer, "PATH", c.file))
		load(c.name, "name", strings.ReplaceAll(c.reader, "PATH", c.file), c.nasty)
	}
	s.write("options.yaml", job.String())
	return tables, steps
}

func (c fileCase) complete() fileCase {
	if c.file = c.name + c.file; c.file == c.name {
		c.file += ".csv"
	}
	if c.item == "" {
		c.item = "id: int, name: string null"
	}
	if c.sql == "" {
		c.sql = "name"
	}
	if c.line == nil {
		c.line = plainLine
	}
	if c.keys != "" {
		c.keys = ", " + c.keys
	}
	return c
}

func TestEveryRowOfEveryKindOfFileIsThereOnceThoughTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, url string) {
		kills, random := killsOf(t, 5, 1, 31)
		for n := int64(0); kills > 0; n++ {
			s := newScene(t, url, nil)
			tables, steps := s.layFiles()
			left := s.filesWithKills(steps, kills, random)
			s.assertFiles(tables, steps)
			t.Logf("job %d: %d kills", n, kills-left)
			kills, url = left, anotherOf(t, url)
		}
	})
}

func (s *scene) filesWithKills(steps []string, kills int, random *rand.Rand) (left int) {
	s.t.Helper()
	order := slices.Concat(random.Perm(len(steps)), random.Perm(len(steps)))
	targets := order[:min(kills, len(order))]
	slices.Sort(targets)
	for {
		p := s.start("run", "options.yaml", "n=1")
		if len(targets) > 0 {
			p.await("step=" + steps[targets[0]] + "\n")
			if !p.waitFor(time.Duration(random.IntN(40_000)) * time.Microsecond) {
				p.signal(syscall.SIGKILL)
			}
		}
		code, out := p.wait()
		if isComplete(code, out) {
			return kills
		}
		require.Equal(s.t, -1, code, "it was not killed, and failed:\n%s", out)
		kills, targets = kills-1, targets[1:]
		for len(targets) > 0 && strings.Contains(out, "step ended step="+steps[targets[0]]+" ") {
			targets = targets[1:] // the kill came after it
		}
	}
}

func (s *scene) assertFiles(tables []fileTable, steps []string) {
	s.t.Helper()
	db, r := s.open()
	for _, table := range tables {
		texts := s.lines(db, fmt.Sprintf("select id || ' ' || coalesce(%s, 'null') from %s order by id", table.sql, table.name))
		require.Equal(s.t, table.rows, texts, table.name)
	}
	killed := 0
	for _, step := range steps {
		counters, attempts := s.totals(r, step, "n", int64(1))
		want := int64(fileRows)
		if strings.HasPrefix(step, "append_") {
			want -= seedRows
		}
		require.Equal(s.t, core.Counters{Read: want, Write: want, Commit: (want + 9) / 10}, counters, step)
		if attempts > 1 {
			killed++
		}
	}
	s.t.Logf("%d of %d steps were run more than once", killed, len(steps))
	parts, err := filepath.Glob(filepath.Join(s.dir, "*.part.*"))
	require.NoError(s.t, err)
	require.Empty(s.t, parts)
}
