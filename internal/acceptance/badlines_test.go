package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const bankTypes = `
types:
  payment: {id: int, account: string, amount: {type: decimal, scale: 2}, due: {type: date, format: yyyyMMdd}, name: string}
`

const bankLoad = `job: load
include: [types.yaml]
flow:
- step: table
  tasklet: {sql: "create table payment (id bigint primary key, account text, amount decimal(15,2), due date, name text)"}
- step: load
  chunk:
    size: 3
    reader:
      fixed:
        path: in.txt
        item: payment
        header: H20261120
        record: D
        columns: {id: {at: 2-9, pad: "0"}, account: 10-21, amount: {at: 22-34, pad: "0", decimals: 2}, due: 35-42, name: 43-52}
        trailer: {begins: T, count: 2-9, sums: {amount: 10-27}}
    writer: {table: payment}
    skip: 10
  expect: balanced
`

const bankExport = `job: export
include: [types.yaml]
flow:
- step: export
  chunk:
    reader: {query: {sql: "select id, account, amount, due, name from payment", key: [id], item: payment}}
    writer:
      fixed:
        path: out.txt
        header: H20261120
        record: D
        columns: {id: {at: 2-9, pad: "0"}, account: 10-21, amount: {at: 22-34, pad: "0", decimals: 2}, due: 35-42, name: 43-52}
        trailer: {begins: T, count: 2-9, sums: {amount: 10-27}}
  expect: written == 12
`

func bankFile() (good, bad string) {
	lines, sum := []string{"H20261120"}, 0
	for id := 1; id <= 12; id++ {
		sum += id * 1250
		lines = append(lines, fmt.Sprintf("D%08dDE%010d%013d202611%02d%-10s", id, id*7, id*1250, id+10, "Name "+string(rune('A'+id))))
	}
	lines = append(lines, fmt.Sprintf("T%08d%018d", 12, sum), "")
	good = strings.Join(lines, "\n")
	lines[3] = strings.Replace(lines[3], "20261113", "20261131", 1)
	lines[6] = "X" + lines[6][1:]
	lines[8] = strings.Replace(lines[8], "D00000008", "D0000000x", 1)
	lines[10] = lines[10][:42]
	return good, strings.Join(lines, "\n")
}

func TestBadLinesOfAFixedWidthFileAreFoundCorrectedAndRedriven(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		good, bad := bankFile()
		s := newScene(t, url, map[string]string{"types.yaml": bankTypes, "load.yaml": bankLoad, "export.yaml": bankExport, "in.txt": bad})
		require.Contains(t, s.said("run", "load.yaml"), "read=8 written=8")
		list := strings.Join(strings.Fields(s.said("skips", "list", "1")), " ")
		for _, want := range []string{
			`in.txt:4 parse in.txt:4: characters 35-42: field due: "20261131" is not a date`, `in.txt:7 parse in.txt:7: the line does not begin with "D" (record)`,
			`in.txt:9 parse in.txt:9: characters 2-9: field id: "x" is not an int`, `in.txt:11 parse in.txt:11: the line has 42 characters, but its columns need 52`,
		} {
			require.Contains(t, list, want)
		}
		require.Contains(t, s.said("skips", "show", "2"), "\nX00000006DE")
		require.NoError(t, os.Remove(filepath.Join(s.dir, "in.txt")), "a redrive needs no file")
		s.redriveCorrected("load", map[string]string{"20261131": "20261113", "X00000006": "D00000006", "D0000000x": "D00000008", "001250020261120": "001250020261120Name K    "}, 4)
		require.NotContains(t, s.said("skips", "list", "1", "--left"), "in.txt")
		require.Contains(t, s.said("sql", "select count(*) as n, cast(round(sum(amount) * 100) as bigint) as cents from payment", "--format", "json"), `"cents": 97500`)
		s.said("run", "export.yaml")
		require.Equal(t, good, s.read("out.txt"))
	})
}

func TestAnAmountThatCannotBeReadFailsTheControlTotal(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, url string) {
		_, bad := bankFile()
		s := newScene(t, url, map[string]string{"types.yaml": bankTypes, "load.yaml": bankLoad, "in.txt": strings.Replace(bad, "0000000003750", "0000000003,50", 1)})
		code, out := s.run("run", "load.yaml")
		require.Equal(t, 1, code)
		require.Contains(t, out, "in.txt:14: the sum of amount cannot be checked: it is unreadable in 1 records")
	})
}
