package acceptance

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type dish struct {
	name string
	args []string
	cook func(s *scene, db tx.Database) (check func())
}

const rowsOf = 3000

func dishes() []dish {
	return []dish{
		{"customers", nil, cookCustomers}, {"payments", []string{"date=2026-11-20"}, cookPayments}, {"meters", []string{"folder=in"}, cookMeters},
		{"review", nil, cookReview}, {"warehouse", nil, cookWarehouse}, {"archive", []string{"before=2026-01-01"}, cookArchive},
		{"migrate", nil, cookMigrate}, {"datamart", []string{"date=2026-11-20"}, cookDatamart}, {"guarded", []string{"date=2026-11-20"}, cookGuarded},
		{"ledger", nil, cookLedger}, {"ledger_file", []string{"date=2026-11-20"}, cookLedgerFile}, {"orders", nil, cookOrders},
		{"nightly", []string{"date=2026-11-20"}, cookNightly}, {"quakes", []string{"since=2026-11-20"}, cookQuakes}, {"enrich", nil, cookEnrich},
	}
}

func TestTheJobsOfTheCookbookEndRightThoughTheyAreKilled(t *testing.T) {
	t.Parallel()
	for n, d := range dishes() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			inTurn(t, n, func(t *testing.T, url string) {
				kills, random := killsOf(t, 60, 20, uint64(n))
				if isSoak() {
					kills = max(kills, 20)
				}
				for left := kills; left > 0; url = anotherOf(t, url) { // until each kill has met a job that ran
					s := newScene(t, url, nil)
					require.NoError(t, os.CopyFS(s.dir, os.DirFS(filepath.Join("..", "..", "jobs", "cookbook"))))
					db, _ := s.open()
					check := d.cook(s, db)
					left -= s.cooked(d, left, random)
					check()
				}
				t.Logf("%s: %d kills", d.name, kills)
			})
		})
	}
}

func anotherOf(t *testing.T, url string) string {
	t.Helper()
	if strings.HasPrefix(url, "postgres") {
		return testdb.Postgres(t)
	}
	return testdb.SQLite(t)
}

func (s *scene) cooked(d dish, kills int, random *rand.Rand) (killed int) {
	s.t.Helper()
	for {
		p := s.start(slices.Concat([]string{"run", d.name + ".yaml"}, d.args, s.params)...)
		if killed < kills && !p.waitFor(time.Duration(5+random.IntN(20<<random.IntN(5)))*time.Millisecond) {
			p.signal(syscall.SIGKILL)
		}
		code, out := p.wait()
		if isComplete(code, out) {
			return killed
		}
		require.Equal(s.t, -1, code, "it was not killed, and failed:\n%s", out)
		killed++
	}
}

func (s *scene) file(name string, head string, rows int, line func(i int) string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	require.NoError(s.t, err)
	var w io.Writer = f
	if strings.HasSuffix(name, ".gz") {
		packed := gzip.NewWriter(f)
		defer func() { require.NoError(s.t, packed.Close()) }()
		w = packed
	}
	lines := make([]string, 0, rows+1)
	lines = append(lines, head)
	for i := range rows {
		lines = append(lines, line(i))
	}
	_, err = io.WriteString(w, strings.Join(lines, "\n")+"\n")
	require.NoError(s.t, err)
}

func (s *scene) exec(db tx.Database, statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		_, err := db.Conn().ExecContext(context.Background(), statement)
		require.NoError(s.t, err, statement)
	}
}

func (s *scene) fill(db tx.Database, table string, rows int, values func(i int) string) {
	s.t.Helper()
	list := make([]string, rows)
	for i := range list {
		list[i] = "(" + values(i) + ")"
	}
	s.exec(db, "insert into "+table+" values "+strings.Join(list, ", "))
}

func cents(amount int64) string { return fmt.Sprintf("%d.%02d", amount/100, amount%100) }

func cookCustomers(s *scene, db tx.Database) func() {
	kept := map[int]int{} // balance by id: the last of its lines
	s.file("customers.csv", "id,name,born,balance,email", rowsOf, func(i int) string {
		id := i * 7 % 2000
		switch {
		case i%300 == 7:
			return fmt.Sprintf("%d,x,31.02.1990,1,", id)
		case i%11 == 0:
			return fmt.Sprintf("%d,n%d,01.02.1990,-0.01,N@X", id, i)
		}
		kept[id] = i * 3
		return fmt.Sprintf("%d,n%d,%02d.02.1990,%s,N%d@X.ORG", id, i, 1+i%28, cents(int64(i*3)), i)
	})
	ids, sum := 0, 0
	for id, balance := range kept {
		ids, sum = ids+id, sum+balance
	}
	return func() {
		got := s.ints(db, "select count(*), cast(sum(id) as bigint), cast(round(sum(balance) * 100) as bigint), count(case when email like 'n%@x.org' then 1 end) from customer", 4)
		require.Equal(s.t, []int64{int64(len(kept)), int64(ids), int64(sum), int64(len(kept))}, got)
	}
}

func cookPayments(s *scene, db tx.Database) func() {
	s.exec(db, "create table payment (id bigint primary key, due date, iban text, bank_code bigint, amount decimal(12,2), purpose text)")
	want, amount, hash := []string{}, int64(0), int64(0)
	s.fill(db, "payment", rowsOf, func(i int) string {
		due, purpose := "2026-11-20", fmt.Sprintf("'Rechnung %d für Größe'", i)
		if i%10 == 0 {
			purpose = "null"
		}
		if i%3 == 0 {
			due = "2026-11-21"
		} else {
			amount, hash = amount+int64(i*17), hash+int64(10000000+i)
			text := strings.Trim(purpose, "'")
			if purpose == "null" {
				text = ""
			}
			want = append(want, fmt.Sprintf("D%-34s%08d%013d%-35s", fmt.Sprintf("DE%020d", i), 10000000+i, i*17, text))
		}
		return fmt.Sprintf("%d, '%s', 'DE%020d', %d, %s, %s", i, due, i, 10000000+i, cents(int64(i*17)), purpose)
	})
	want = append([]string{fmt.Sprintf("H20261120%07d", len(want))}, append(want, fmt.Sprintf("T%07d%015d%018d", len(want), amount, hash))...)
	return func() {
		content, err := os.ReadFile(filepath.Join(s.dir, "out", "pay_20261120.txt"))
		require.NoError(s.t, err)
		text := make([]rune, len(content)) // of ISO 8859-15; its letters here are the same in Unicode
		for i, b := range content {
			text[i] = rune(b)
		}
		require.Equal(s.t, strings.Join(want, "\r\n")+"\r\n", string(text))
	}
}

func cookMeters(s *scene, db tx.Database) func() {
	s.exec(db, "create table reading (meter bigint, at timestamp, kwh decimal(10,3), source text, primary key (meter, at))")
	sum, good := int64(0), int64(0)
	for f := range 4 {
		s.file(fmt.Sprintf("in/m%d.csv.gz", f), "meter,at,kwh", rowsOf/4, func(i int) string {
			if i%100 == 50 {
				return fmt.Sprintf("%d,noon,1", f)
			}
			sum, good = sum+int64(f*1000+i), good+1
			return fmt.Sprintf("%d,2026-11-%02dT%02d:%02d:00Z,%d.%03d", f, 1+i/1440, i/60%24, i%60, (f*1000+i)/1000, (f*1000+i)%1000)
		})
	}
	return func() {
		got := s.ints(db, "select count(*), count(distinct source), cast(round(sum(kwh) * 1000) as bigint) from reading", 3)
		require.Equal(s.t, []int64{good, 4, sum}, got)
		for folder, files := range map[string]int{"in/*.gz": 0, "in/done/*.gz": 4} {
			found, err := filepath.Glob(filepath.Join(s.dir, folder))
			require.NoError(s.t, err)
			require.Len(s.t, found, files, folder)
		}
	}
}

func cookReview(s *scene, db tx.Database) func() {
	s.exec(db, "create table staging (id bigint, v decimal(10,2))", "create table final (id bigint, v decimal(10,2))")
	s.file("in.csv", "id,v", rowsOf, func(i int) string {
		if i%200 == 100 {
			return fmt.Sprintf("%d,much", i)
		}
		return fmt.Sprintf("%d,%s", i, cents(int64(i)))
	})
	const bad = rowsOf / 200
	return func() {
		require.Equal(s.t, []int64{rowsOf - bad, rowsOf - bad}, s.ints(db, "select count(*), count(distinct id) from final", 2))
		found, err := filepath.Glob(filepath.Join(s.dir, "out", "rejects_*.csv"))
		require.NoError(s.t, err)
		require.Len(s.t, found, 1)
		content, err := os.ReadFile(found[0])
		require.NoError(s.t, err)
		require.Equal(s.t, bad+1, strings.Count(string(content), "\n"), string(content))
	}
}

func cookWarehouse(s *scene, db tx.Database) func() {
	s.exec(db, "create table daily_total (account bigint primary key, amount decimal(12,2))")
	s.file("in/customer.csv", "id,name", rowsOf, func(i int) string { return fmt.Sprintf("%d,n%d", i, i) })
	s.file("in/account.csv", "id,iban", rowsOf, func(i int) string { return fmt.Sprintf("%d,DE%d", i, i) })
	s.file("in/booking.csv", "id,account,amount", rowsOf, func(i int) string { return fmt.Sprintf("%d,%d,%s", i, i%50, cents(int64(i))) })
	return func() {
		require.Equal(s.t, []int64{rowsOf, rowsOf, rowsOf}, s.ints(db, "select (select count(*) from customer), (select count(*) from account), (select count(*) from booking)", 3))
		require.Equal(s.t, []int64{50, rowsOf * (rowsOf - 1) / 2}, s.ints(db, "select count(*), cast(round(sum(amount) * 100) as bigint) from daily_total", 2))
	}
}

func cookArchive(s *scene, db tx.Database) func() {
	s.exec(db, "create table booking (id bigint primary key, booked date, amount decimal(12,2))", "create table booking_archive (id bigint, booked date, amount decimal(12,2))")
	s.fill(db, "booking", rowsOf, func(i int) string {
		return fmt.Sprintf("%d, '%d-06-01', %s", i, 2024+i%3, cents(int64(i)))
	})
	return func() {
		const old = rowsOf / 3 * 2
		require.Equal(s.t, []int64{rowsOf - old, old, old, 0}, s.ints(db, `select (select count(*) from booking), (select count(*) from booking_archive),
			(select count(distinct id) from booking_archive), (select count(*) from booking where id in (select id from booking_archive))`, 4))
		require.Equal(s.t, []int64{rowsOf * (rowsOf - 1) / 2}, s.ints(db, "select cast(round(sum(amount) * 100) as bigint) from (select amount from booking union all select amount from booking_archive) a", 1))
	}
}

func cookMigrate(s *scene, _ tx.Database) func() {
	urls := map[string]string{"legacy": testdb.SQLite(s.t), "core": testdb.Postgres(s.t)}
	provider, err := gormdb.Open(s.t.Context(), map[string]gormdb.Config{"legacy": {URL: urls["legacy"]}, "core": {URL: urls["core"]}})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, provider.Close()) })
	legacy, err := provider.Database("legacy")
	require.NoError(s.t, err)
	into, err := provider.Database("core")
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "surfin.yaml"), fmt.Appendf(nil, "databases:\n  legacy: {url: %q}\n  core: {url: %q}\n", urls["legacy"], urls["core"]), 0o600))
	s.exec(legacy, "create table kunde (id integer primary key, name text, saldo decimal(12,2))")
	s.exec(into, "create table customer (id bigint primary key, name text, balance numeric(12,2) not null)")
	sum := int64(0)
	s.fill(legacy, "kunde", rowsOf, func(i int) string {
		if i%9 == 0 {
			return fmt.Sprintf("%d, ' n%d ', null", i*5, i)
		}
		sum += int64(i * 3)
		return fmt.Sprintf("%d, ' n%d ', %s", i*5, i, cents(int64(i*3)))
	})
	return func() {
		require.Equal(s.t, []int64{rowsOf, sum, 0}, s.ints(into, "select count(*), cast(sum(balance) * 100 as bigint), count(case when name like ' %' then 1 end) from customer", 3))
	}
}

func cookDatamart(s *scene, db tx.Database) func() {
	s.exec(db, "create table src_customer (id bigint primary key, name text)", "create table src_account (iban text primary key, owner bigint)",
		"create table src_booking (id bigint, line bigint, iban text, amount decimal(12,2), primary key (id, line))", "create table turnover (day date, owner bigint, amount decimal(12,2))")
	s.fill(db, "src_customer", 100, func(i int) string { return fmt.Sprintf("%d, 'n%d'", i, i) })
	s.fill(db, "src_account", 300, func(i int) string { return fmt.Sprintf("'DE%04d', %d", i, i%100) })
	s.fill(db, "src_booking", rowsOf, func(i int) string {
		return fmt.Sprintf("%d, %d, 'DE%04d', %s", i/3, i%3, i%300, cents(int64(i)))
	})
	return func() {
		require.Equal(s.t, []int64{100, 300, rowsOf}, s.ints(db, "select (select count(*) from customer), (select count(*) from account), (select count(*) from booking)", 3))
		require.Equal(s.t, []int64{100, rowsOf * (rowsOf - 1) / 2}, s.ints(db, "select count(*), cast(round(sum(amount) * 100) as bigint) from turnover", 2))
	}
}

func cookGuarded(s *scene, db tx.Database) func() {
	var alerts atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { alerts.Add(1) }))
	s.t.Cleanup(server.Close)
	s.env = append(s.env, "SURFIN_SECRET_PG=not-a-secret", "SURFIN_SECRET_WEBHOOK="+server.URL)
	s.exec(db, "create table job_lock (name text primary key, owner bigint)", "create table run (ok boolean)", "create table scratch (n bigint)", "insert into run values (false)", "insert into scratch values (1)")
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "work.sh"), []byte("#!/bin/sh\n[ \"$PGPASSWORD\" = not-a-secret ] && echo \"$1\" >> worked\n[ -e fail ] && rm fail && exit 1\nsleep 0.2\n"), 0o700)) //nolint:gosec // a script
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "fail"), nil, 0o600))
	code, out := s.run("run", "guarded.yaml", "date=2026-11-20")
	require.Equal(s.t, 1, code, out)
	require.EqualValues(s.t, 1, alerts.Load())
	require.Equal(s.t, []int64{0, 0}, s.ints(db, "select (select count(*) from job_lock), (select count(*) from scratch)", 2))
	return func() {
		require.Equal(s.t, []int64{0, 1}, s.ints(db, "select (select count(*) from job_lock), (select count(*) from run where ok)", 2))
		worked, err := os.ReadFile(filepath.Join(s.dir, "worked"))
		require.NoError(s.t, err)
		require.Equal(s.t, "2026-11-20", strings.Split(string(worked), "\n")[0])
		require.EqualValues(s.t, 1, alerts.Load())
	}
}

func cookNightly(s *scene, db tx.Database) func() {
	s.exec(db, "create table account (id bigint primary key, owner text, balance decimal(12,2), closed_on date)")
	want := ""
	s.fill(db, "account", rowsOf, func(i int) string {
		closed := "'2026-11-19'"
		if i%4 != 0 {
			closed = "null"
			want += fmt.Sprintf("{\"id\":%d,\"owner\":\"n%d\",\"balance\":%s}\n", i, i, cents(int64(i)))
		}
		return fmt.Sprintf("%d, 'n%d', %s, %s", i, i, cents(int64(i)), closed)
	})
	code, out := s.run("run", "nightly.yaml", "date=2026-12-25")
	require.Equal(s.t, 0, code, out)
	require.Contains(s.t, out, "HOLIDAY")
	return func() {
		content, err := os.ReadFile(filepath.Join(s.dir, "out", "statements_2026-11-20.jsonl"))
		require.NoError(s.t, err)
		require.Equal(s.t, want, string(content))
	}
}

func cookQuakes(s *scene, db tx.Database) func() {
	var requests, refused atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Header.Get("Authorization") != "Bearer not-a-secret" || q.Get("since") != "2026-11-20" || q.Get("limit") != "200" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if n := requests.Add(1); n%5 == 2 {
			refused.Add(1)
			w.WriteHeader([]int{http.StatusTooManyRequests, http.StatusBadGateway}[n%2])
			return
		}
		time.Sleep(5 * time.Millisecond) // as a network takes
		from := 0
		if c := q.Get("cursor"); c != "" {
			_, err := fmt.Sscanf(c, "after-%d", &from)
			assert.NoError(s.t, err)
		}
		list := []string{}
		for i := from; i < min(from+200, rowsOf); i++ {
			list = append(list, fmt.Sprintf(`{"id": "q%d", "time": %d, "properties": {"mag": %d.5, "place": "p%d"}}`, i, 1763596800000+i, i%9, i))
		}
		next := "null"
		if from+200 < rowsOf {
			next = fmt.Sprintf(`"after-%d"`, from+200)
		}
		_, _ = fmt.Fprintf(w, `{"body": {"data": [%s], "next": %s}}`, strings.Join(list, ", "), next) //nolint:errcheck // a killed client is gone
	}))
	s.t.Cleanup(server.Close)
	s.env = append(s.env, "SURFIN_SECRET_API_TOKEN=not-a-secret")
	s.params = []string{"api=" + server.URL}
	sum := 0
	for i := range rowsOf {
		sum += 10*(i%9) + 5
	}
	return func() {
		require.Equal(s.t, []int64{rowsOf, int64(sum)}, s.ints(db, "select count(*), cast(round(sum(mag) * 10) as bigint) from quake", 2))
		require.Positive(s.t, refused.Load())
	}
}

func cookEnrich(s *scene, db tx.Database) func() {
	rates, names := map[string]int64{"EUR": 10000, "USD": 9215, "JPY": 61}, []string{"EUR", "USD", "JPY", "XXX"}
	s.file("rates.csv", "currency,rate", 3, func(i int) string {
		return fmt.Sprintf("%s,%d.%04d", names[i], rates[names[i]]/10000, rates[names[i]]%10000)
	})
	s.file("customers.csv", "customer,name,vip", 400, func(i int) string { return fmt.Sprintf("%d,n%d,%v", i*2, i*2, i%2 == 0) })
	known, unknown, sum := int64(0), int64(0), int64(0)
	s.file("orders.csv", "id,customer,amount,currency", rowsOf, func(i int) string {
		currency := names[i%4]
		if rate, ok := rates[currency]; ok {
			known++
			if customer := i / 3; customer%2 == 1 || customer >= 800 {
				unknown++
			}
			eur, rest := int64(i*7)*rate/10000, int64(i*7)*rate%10000
			if rest > 5000 || rest == 5000 && eur%2 == 1 {
				eur++
			}
			sum += eur
		}
		return fmt.Sprintf("%d,%d,%s,%s", i, i/3, cents(int64(i*7)), currency)
	})
	return func() {
		got := s.ints(db, "select count(*), count(case when name = 'unknown' then 1 end), sum(cast(round(eur * 100) as bigint)) from enriched_order", 3)
		require.Equal(s.t, []int64{known, unknown, sum}, got)
	}
}
