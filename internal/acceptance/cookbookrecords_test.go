package acceptance

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const branchesOf = 7

func bookingOf(i int) (branch, account, amount int) {
	return i * branchesOf / rowsOf, 100000 + i, i*37 - 40000
}

func ebcdic(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := charmap.CodePage1047.NewEncoder().Bytes([]byte(text))
	require.NoError(t, err)
	return raw
}

// packed is a number as COMP-3 of so many bytes.
func packed(n, size int) []byte {
	sign := "c"
	if n < 0 {
		n, sign = -n, "d"
	}
	raw := make([]byte, 0, size)
	for digits := fmt.Sprintf("%0*d%s", 2*size-1, n, sign); digits != ""; digits = digits[2:] {
		var b byte
		_, _ = fmt.Sscanf(digits[:2], "%02x", &b)
		raw = append(raw, b)
	}
	return raw
}

func ledgerFile(t testing.TB) []byte {
	t.Helper()
	var file bytes.Buffer
	record := func(parts ...[]byte) {
		begin := file.Len()
		for _, part := range parts {
			file.Write(part)
		}
		file.Write(bytes.Repeat([]byte{0x40}, 40-(file.Len()-begin)))
	}
	record(ebcdic(t, "F20261120"))
	all, sum, count, last := 0, 0, 0, -1
	end := func() {
		if last >= 0 {
			record(ebcdic(t, fmt.Sprintf("E%05d", count)), packed(sum, 8))
		}
		all, sum, count = all+sum, 0, 0
	}
	for i := range rowsOf {
		branch, account, amount := bookingOf(i)
		if branch != last {
			end()
			record(ebcdic(t, fmt.Sprintf("B%04d", branch)))
			last = branch
		}
		record(ebcdic(t, "D"), packed(account, 5), packed(amount, 6), ebcdic(t, fmt.Sprintf("Gebühr %d", i)))
		sum, count = sum+amount, count+1
	}
	end()
	zoned := ebcdic(t, fmt.Sprintf("%014d", max(all, -all)))
	sign := byte(0xC0)
	if all < 0 {
		sign = 0xD0
	}
	zoned[13] = sign | zoned[13]&0xF
	record(ebcdic(t, fmt.Sprintf("Z%07d", rowsOf)), zoned)
	return file.Bytes()
}

func signed(amount int64) string {
	if amount < 0 {
		return "-" + cents(-amount)
	}
	return cents(amount)
}

const bookingTable = "create table booking (day date, branch int, account bigint, amount decimal(11,2), purpose text, primary key (day, branch, account))"

func cookLedger(s *scene, db tx.Database) func() {
	s.exec(db, bookingTable)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "ledger.dat"), ledgerFile(s.t), 0o600))
	want := []int64{rowsOf, 0, 0, branchesOf}
	for i := range rowsOf {
		branch, account, amount := bookingOf(i)
		want[1], want[2] = want[1]+int64(amount), want[2]+int64(branch*account)
	}
	return func() {
		require.Equal(s.t, want, s.ints(db, "select count(*), cast(round(sum(amount) * 100) as bigint), sum(branch * account), count(distinct branch) from booking", 4))
	}
}

func cookLedgerFile(s *scene, db tx.Database) func() {
	s.exec(db, bookingTable)
	s.fill(db, "booking", rowsOf, func(i int) string {
		branch, account, amount := bookingOf(i)
		return fmt.Sprintf("'2026-11-20', %d, %d, %s, 'Gebühr %d'", branch, account, signed(int64(amount)), i)
	})
	return func() {
		content, err := os.ReadFile(filepath.Join(s.dir, "ledger.dat"))
		require.NoError(s.t, err)
		require.True(s.t, bytes.Equal(ledgerFile(s.t), content), "the file differs from the one that the mainframe would send")
	}
}

func cookOrders(s *scene, db tx.Database) func() {
	s.exec(db, "create table order_line (number bigint, customer text, article text, amount decimal(11,2))")
	var file strings.Builder
	lines, sum, hash := int64(0), int64(0), int64(0)
	for n := range rowsOf / 5 {
		fmt.Fprintf(&file, "ORDER;%d;\"customer; %d\"\n", n, n)
		total := int64(0)
		for l := range n % 10 {
			amount := int64(n*l) - 100
			fmt.Fprintf(&file, "LINE;article %d;%s\n", l, signed(amount))
			total, lines, hash = total+amount, lines+1, hash+int64(n)
		}
		sum += total
		fmt.Fprintf(&file, "SUM;%d;%s\nREM;nothing\n", n%10, signed(total))
	}
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "orders.csv"), []byte(file.String()), 0o600))
	return func() {
		require.Equal(s.t, []int64{lines, sum, hash, lines}, s.ints(db, "select count(*), cast(round(sum(amount) * 100) as bigint), sum(number), sum(case when customer = 'customer; ' || number then 1 else 0 end) from order_line", 4))
	}
}

// Rule C15p.
func TestATrailerThatDisagreesIsFoundBeforeTheLastChunkCommits(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		reader := map[string]string{
			"fixed.yaml": "fixed: {path: in.txt, item: {id: int}, columns: {id: 2-4}, record: D, trailer: {begins: T, count: 2-4}}",
			"types.yaml": "fixed: {path: in.txt, item: {id: int}, records: {D: {columns: {id: 2-4}}, T: {as: trailer, count: 2-4}}}",
			"csv.yaml":   "csv: {path: in.csv, item: {id: int}, records: {D: {columns: {id: 2}}, T: {as: trailer, count: 2}}}",
		}
		files := map[string]string{"in.txt": "D001\nD002\nD003\nD004\nT005\n", "in.csv": "D,1\nD,2\nD,3\nD,4\nT,5\n"}
		for name, text := range reader {
			files[name] = "job: " + strings.TrimSuffix(name, ".yaml") + "\nflow:\n- step: load\n  chunk:\n    size: 2\n    reader: {" + text + "}\n    writer: {table: {name: " + strings.TrimSuffix(name, ".yaml") + "_rows, create: true}}\n"
		}
		s := newScene(t, url, files)
		db, _ := s.open()
		for name := range reader {
			code, out := s.run("run", name)
			require.Equal(t, 1, code, out)
			require.Contains(t, out, "says 5 records, but the file has 4: it is incomplete")
			require.Equal(t, []int64{2}, s.ints(db, "select count(*) from "+strings.TrimSuffix(name, ".yaml")+"_rows", 1), name)
		}
	})
}

func TestMistakesOfRecordTypesAreReportedWithPositions(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"bad.yaml": `job: bad
flow:
- step: load
  chunk:
    reader:
      fixed:
        path: in.dat
        length: 40
        encoding: ibm1047
        item: {day: date, account: int, amount: {type: decimal, scale: 2}}
        records:
          H: {as: header, columns: {day: 2-9}}
          D: {columns: {account: {at: 2-5, format: packed}, amont: {at: 6-10, format: packed, decimals: 2}}}
          E: {columns: {account: 2-9, amount: {at: 10-14, format: packed}}}
          T: {as: trailer, of: X, count: 2-9, sums: {amount: 10-41}}
    writer: {table: ledger}
- step: bytes
  chunk:
    reader: {fixed: {path: in.txt, item: {id: int}, columns: {id: {at: 1-4, format: binary}}}}
    writer: {fixed: {path: out.txt, length: 4, columns: {id: {at: 1-8, format: zoned, pad: "0"}}}}
- step: delimited
  chunk:
    reader: {csv: {path: in.csv, item: {day: date, account: int}, records: {H: {as: header, columns: {day: 2}}, D: {columns: {acount: 2}, count: 3}}}}
    writer: {table: ledger}
`})
	code, out := s.run("validate", "bad.yaml")
	require.Equal(t, 2, code, out)
	for _, want := range []string{
		"bad.yaml:13:68: reader fixed: records.D.columns.amont: the item has no field amont (did you mean amount?)",
		"bad.yaml:14:47: reader fixed: records.E.columns.amount: decimals: the file does not say how many digits a packed number has after its point",
		"bad.yaml:15:32: reader fixed: records.T.of: X is not a header of this file (as: header)",
		"reader fixed: columns.id: format: a binary number may contain the bytes of a line end: set the length of the records",
		"writer fixed: columns.id: format: a zoned number fills its column: omit align and pad",
		"reader csv: records.D.columns.acount: the item has no field acount (did you mean account?)",
		"reader csv: records.D.count: it needs a trailer, but this type is \"detail\" (as)",
	} {
		require.Contains(t, out, want)
	}
}

func TestBinaryNumbersOfOtherProgramsAreRead(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"bin.yaml": `job: bin
flow:
- step: load
  chunk:
    reader: {fixed: {path: in.dat, length: 14, item: {a: int, b: int, c: {type: decimal, scale: 2}}, columns: {a: {at: 1-2, format: binary, sign: none}, b: {at: 3-6, format: binary}, c: {at: 7-14, format: binary, decimals: 2}}}}
    writer: {csv: out.csv}
`})
	var file bytes.Buffer
	for _, v := range []any{uint16(65535), int32(-7), int64(-1234567890123), uint16(0), int32(2147483647), int64(5)} {
		require.NoError(t, binary.Write(&file, binary.BigEndian, v))
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "in.dat"), file.Bytes(), 0o600))
	code, out := s.run("run", "bin.yaml")
	require.Equal(t, 0, code, out)
	content, err := os.ReadFile(filepath.Join(s.dir, "out.csv"))
	require.NoError(t, err)
	require.Equal(t, "a,b,c\n65535,-7,-12345678901.23\n0,2147483647,0.05\n", string(content))
}
