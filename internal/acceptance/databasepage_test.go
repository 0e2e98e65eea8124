package acceptance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testdb/pgcluster"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	roleJob = `job: load
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {table: {name: customer, mode: upsert, key: [id]}}
    skip: {limit: 5}
`
	rolePartsJob = `job: parts
flow:
- step: parts
  partition: {by: {count: 3}, remote: true}
  tasklet: {sql: "insert into customer values (${part.index} + 100, 'part')"}
`
)

// roles is the page docs/howto/database.md in a database: its roles have other names, since roles belong to
// the whole server.
type roles struct {
	*scene
	admin, suffix string
	page          []block
}

func newRoles(t *testing.T) *roles {
	t.Helper()
	r := &roles{admin: testdb.EmptyPostgres(t), suffix: "_" + strings.ToLower(rand.Text()[:8]), page: blocks(t, "database.md")}
	r.scene = newScene(t, r.admin, map[string]string{"load.yaml": roleJob, "parts.yaml": rolePartsJob, "in.csv": "id,name\n1,Ann\n2,Bob\nx,Cyd\n3,Dee\n"})
	r.env = []string{"SURFIN_AUTO_MIGRATE=false"}
	db, _ := r.open()
	names := []string{"batch_owner", "batch_runner", "batch_reader"}
	for _, b := range r.page {
		if b.language == "sql" && b.comment == "" {
			r.exec(db, r.named(b.text))
		}
	}
	t.Cleanup(func() {
		for _, name := range names {
			r.exec(db, "drop owned by "+name+r.suffix+" cascade", "drop role "+name+r.suffix)
		}
	})
	return r
}

func (r *roles) named(text string) string {
	return strings.NewReplacer("batch_owner", "batch_owner"+r.suffix, "batch_runner", "batch_runner"+r.suffix, "batch_reader", "batch_reader"+r.suffix).Replace(text)
}

func (r *roles) as(role string) *scene {
	r.t.Helper()
	u, err := url.Parse(r.admin)
	require.NoError(r.t, err)
	u.User = url.UserPassword("batch_"+role+r.suffix, role+"-passw0rd")
	other := *r.scene
	other.url = u.String()
	return &other
}

func TestTheRolesOfTheDatabasePageMayDoWhatItSays(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	for _, b := range r.page {
		role, is := strings.CutPrefix(b.comment, "as ")
		if b.language != "sh" || !is {
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(b.text), "\n") {
			code, out := r.as(role).run(commandWords(t, line)...)
			require.Zero(t, code, "%s: %s\n%s", role, line, out)
		}
		if role == "owner" {
			db, _ := r.as("owner").open()
			r.exec(db, "create table customer (id int primary key, name varchar(20))")
		}
	}
	db, _ := r.as("reader").open()
	require.Equal(t, []string{"1 Ann", "2 Bob", "3 Dee"}, r.lines(db, "select id || ' ' || name from customer order by id"))
	code, out := r.as("runner").run("skips", "list", "1")
	require.Zero(t, code, out)

	for role, commands := range map[string][]string{"reader": {"run load.yaml --again", "stop 1"}, "runner": {"sql 'drop table customer'"}} {
		for _, line := range commands {
			code, out := r.as(role).run(commandWords(t, "surfin "+line)...)
			require.NotZero(t, code, "%s may not %s: %s", role, line, out)
		}
	}

	r.env = append(r.env, "SURFIN_ENGINE=river")
	code, out = r.as("owner").run("migrate")
	require.Zero(t, code, out)
	worker := r.as("runner").worker()
	code, out = r.as("runner").run("run", "parts.yaml")
	require.Zero(t, code, out+worker.out.String())
	require.Equal(t, []string{"3"}, r.lines(db, "select count(*) from customer where id >= 100"))
	worker.signal(syscall.SIGTERM)
	code, out = worker.wait()
	require.Zero(t, code, out)
}

func TestAProgramWorksWithTheVersionsOfTheTablesThatThePageNames(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"load.yaml": "job: load\nflow:\n- step: one\n  tasklet: {sql: select 1}\n"})
		s.env = []string{"SURFIN_AUTO_MIGRATE=false"}
		db, _ := s.open()
		version, err := strconv.Atoi(s.lines(db, "select version from surfin_schema_migrations")[0])
		require.NoError(t, err)
		for offset, want := range map[int]string{0: "", 1: "", -1: "run `surfin migrate`", 1000: "use a newer surfin"} {
			s.exec(db, "update surfin_schema_migrations set version = "+strconv.Itoa(version+offset))
			code, out := s.run("run", "load.yaml", "--again")
			require.Equal(t, want == "", code == 0, "%d: %s", offset, out)
			require.Contains(t, out, want)
		}
	})
}

func TestAProcessHasNoMoreConnectionsThanThePageSays(t *testing.T) {
	t.Parallel()
	var branches strings.Builder
	for i := range 24 {
		fmt.Fprintf(&branches, "  - [{step: wait%d, tasklet: {sql: \"select pg_sleep(0.2)\"}}]\n", i)
	}
	s := newScene(t, testdb.Postgres(t), map[string]string{"wide.yaml": "job: wide\nflow:\n- split: wide\n  branches:\n" + branches.String()})
	db, r := s.open()
	p := s.start("run", "wide.yaml")
	most := 0
	for !p.waitFor(20 * time.Millisecond) {
		n, err := strconv.Atoi(s.lines(db, "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' and application_name like 'surfin%'")[0])
		require.NoError(t, err)
		most = max(most, n)
	}
	code, out := p.wait()
	require.Zero(t, code, out)
	require.Equal(t, core.StatusCompleted, newestOf(t, r, "wide").Status)
	require.Greater(t, most, 4, "the pool was wide")
	require.LessOrEqual(t, most, 10+3+1)
}

func TestTheURLDecidesAboutTLS(t *testing.T) {
	t.Parallel()
	cluster, err := pgcluster.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	s := newScene(t, cluster.URL(), map[string]string{"load.yaml": "job: load\nflow:\n- step: one\n  tasklet: {sql: \"create table if not exists ssl_of as select ssl from pg_stat_ssl where pid = pg_backend_pid()\"}\n"})
	db, _ := s.open()
	ca := s.certify(s.lines(db, "show data_directory")[0], "127.0.0.1")
	wrong := s.certify("", "127.0.0.1")
	s.exec(db, "alter system set ssl = on", "select pg_reload_conf()")
	require.Eventually(t, func() bool { return s.lines(db, "show ssl")[0] == "on" }, time.Minute, 20*time.Millisecond)
	u, err := url.Parse(cluster.URL())
	require.NoError(t, err)
	run := func(host string, parameters url.Values) (int, string) {
		other, with := *s, *u
		with.Host = net.JoinHostPort(host, u.Port())
		with.RawQuery = parameters.Encode()
		other.url = with.String()
		return other.run("run", "load.yaml", "--again")
	}
	for _, one := range []struct {
		host, mode, ca string
		ok             bool
		encrypted      string
	}{
		{"127.0.0.1", "disable", "", true, "false"}, {"127.0.0.1", "require", "", true, "true"}, {"127.0.0.1", "verify-full", ca, true, "true"},
		{"127.0.0.1", "verify-full", wrong, false, ""}, {"localhost", "verify-full", ca, false, ""}, {"localhost", "verify-ca", ca, true, "true"},
	} {
		s.exec(db, "drop table if exists ssl_of")
		values := url.Values{"sslmode": {one.mode}}
		if one.ca != "" {
			values.Set("sslrootcert", one.ca)
		}
		code, out := run(one.host, values)
		require.Equal(t, one.ok, code == 0, "%v: %s", one, out)
		if one.ok {
			require.Equal(t, []string{one.encrypted}, s.lines(db, "select ssl::text from ssl_of"), one.mode)
		} else {
			require.Contains(t, out, "certificate", "%v", one)
		}
	}
}

func TestATokenIsChangedByASecondName(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"jobs/quick.yaml": servedJob})
	const second = "second-0123456789abcdef"
	s.env = []string{"SURFIN_API_OPERATOR_TOKENS_CI=" + serveToken, "SURFIN_API_OPERATOR_TOKENS_CI2=" + second}
	server := s.serve("--jobs", "jobs")
	for _, token := range []string{serveToken, second} {
		require.Contains(t, server.get(token, "/v1/jobs"), "quick")
	}
	server.signal(syscall.SIGTERM)
	server.wait()
	s.env = []string{"SURFIN_API_OPERATOR_TOKENS_CI2=" + second}
	server = s.serve("--jobs", "jobs")
	require.NotContains(t, server.get(serveToken, "/v1/jobs"), "quick")
	require.Contains(t, server.get(second, "/v1/jobs"), "quick")
}

func TestARestoredHistoryFindsItsPartOrSaysThatItIsGone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{
			"in.csv":      "id,name\n1,Ann\n2,Bob\nx,Cyd\n4,Dee\n",
			"export.yaml": "job: export\nflow:\n- step: export\n  chunk:\n    size: 1\n    reader: {csv: {path: in.csv, item: {id: int, name: string}}}\n    writer: {csv: {path: out.csv}}\n",
		})
		code, out := s.run("run", "export.yaml")
		require.Equal(t, 1, code, out)
		parts, err := filepath.Glob(filepath.Join(s.dir, "out.csv.part.*"))
		require.NoError(t, err)
		require.Len(t, parts, 1)
		kept, err := os.ReadFile(parts[0])
		require.NoError(t, err)
		require.NoError(t, os.Remove(parts[0]))
		code, out = s.run("restart", "1")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "--from-start")

		require.NoError(t, os.WriteFile(parts[0], kept, 0o600))
		s.write("in.csv", "id,name\n1,Ann\n2,Bob\n3,Cyd\n4,Dee\n")
		code, out = s.run("run", "export.yaml", "--from-start")
		require.Zero(t, code, out)
		require.Equal(t, "id,name\n1,Ann\n2,Bob\n3,Cyd\n4,Dee\n", s.read("out.csv"))
	})
}

func (s *scene) certify(folder, address string) string {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(s.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.ParseIP(address)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(s.t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	text, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(s.t, err)
	if folder != "" {
		info, err := os.Stat(filepath.Join(folder, "PG_VERSION"))
		require.NoError(s.t, err)
		owner := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // of Linux
		for name, content := range map[string][]byte{"server.crt": certificate, "server.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})} {
			path := filepath.Join(folder, name)
			require.NoError(s.t, os.WriteFile(path, content, 0o600))
			require.NoError(s.t, os.Chown(path, int(owner.Uid), int(owner.Gid)))
		}
	}
	ca := filepath.Join(s.t.TempDir(), "ca.pem")
	require.NoError(s.t, os.WriteFile(ca, certificate, 0o600))
	return ca
}
