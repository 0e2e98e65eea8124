package acceptance

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const (
	annaToken = "anna-0123456789abcdef"
	wallToken = "wall-0123456789abcdef"
)

// fronted is a server with nginx in front of it, as docs/howto/securing.md has both.
type fronted struct {
	*served
	proxy  string // the socket of nginx, with TLS
	client *http.Client
}

// behindNginx starts a server with the settings of the page, and nginx with its location. Addresses are
// others; change edits the location.
func behindNginx(t *testing.T, settings string, change func(location string) string) *fronted {
	t.Helper()
	s := newScene(t, testdb.SQLite(t), map[string]string{"jobs/quick.yaml": servedJob})
	s.write("surfin.yaml", settings)
	s.env = []string{"SURFIN_API_OPERATOR_TOKENS_ANNA=" + annaToken, "SURFIN_API_VIEWER_TOKENS_WALL=" + wallToken}
	f := &fronted{served: s.serve("--jobs", "jobs")}
	location := ""
	for _, b := range blocks(t, "securing.md") {
		if strings.HasPrefix(b.text, "location /surfin/ {") {
			location = strings.Replace(b.text, "http://127.0.0.1:8321", "http://"+f.address, 1)
		}
	}
	require.Contains(t, location, f.address)
	folder, err := os.MkdirTemp("", "nginx") // a path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	f.proxy = filepath.Join(folder, "tls")
	selfSigned(t, folder)
	write(t, filepath.Join(folder, "users"), "anna:{PLAIN}secret\nbob:{PLAIN}secret\neve:{PLAIN}secret\n")
	write(t, filepath.Join(folder, "nginx.conf"), `daemon off; master_process off; pid nginx.pid; error_log stderr;
events { worker_connections 100; }
http {
access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
server {
listen unix:`+f.proxy+` ssl; ssl_certificate server.crt; ssl_certificate_key server.key;
`+change(location)+`}
}
`)
	nginx := s.startProgram(program(t, "nginx"), "-p", folder, "-c", "nginx.conf", "-e", "stderr")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", f.proxy)
	}
	f.client = &http.Client{
		Transport:     &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // its own certificate
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	require.Eventually(t, func() bool {
		got, err := f.client.Get("https://batch.example/surfin/livez") //nolint:noctx // of this test
		return err == nil && got.Body.Close() == nil && got.StatusCode < http.StatusInternalServerError
	}, 20*time.Second, 10*time.Millisecond, "%s", &nginx.out)
	return f
}

type reply struct {
	t      *testing.T
	asked  string
	status int
	header http.Header
	text   string
}

// ask sends a request through nginx. headers are names and values.
func (f *fronted) ask(method, path, body string, headers ...string) reply {
	f.t.Helper()
	return f.through(f.client, method, "https://batch.example"+path, body, headers...)
}

func (f *fronted) through(client *http.Client, method, address, body string, headers ...string) reply {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, address, strings.NewReader(body))
	require.NoError(f.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := client.Do(r)
	require.NoError(f.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(f.t, err)
	return reply{f.t, method + " " + address, got.StatusCode, got.Header, string(text)}
}

func (r reply) is(status int) reply {
	r.t.Helper()
	require.Equal(r.t, status, r.status, "%s\n%s", r.asked, r.text)
	return r
}

// Rules AP6 to AP9.
func TestAServerBehindTheProxyOfThePageIsReachedAsItSays(t *testing.T) {
	t.Parallel()
	f := behindNginx(t, securingBlock(t, "base_path"), func(location string) string { return location })
	f.ask("GET", "/surfin/v1/executions", "").is(http.StatusUnauthorized)
	f.ask("GET", "/surfin/v1/executions", "", "X-Forwarded-User", "anna").is(http.StatusUnauthorized)
	require.Equal(t, "/surfin/login?next=%2Fjobs%3Fjob%3Dx", f.ask("GET", "/surfin/jobs?job=x", "", "Accept", "text/html").is(http.StatusSeeOther).header.Get("Location"))
	form := url.Values{"token": {annaToken}}.Encode()
	in := f.ask("POST", "/surfin/login?next=%2Fjobs", form, "Content-Type", "application/x-www-form-urlencoded", "Origin", "https://batch.example", "Sec-Fetch-Site", "same-origin").is(http.StatusSeeOther)
	require.Equal(t, "/surfin/jobs", in.header.Get("Location"))
	for _, part := range []string{"Path=/surfin/;", "Secure", "HttpOnly", "SameSite=Strict"} {
		require.Contains(t, in.header.Get("Set-Cookie"), part)
	}
	session, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
	f.ask("POST", "/surfin/v1/recover", "", "Cookie", session, "Origin", "https://evil.example").is(http.StatusForbidden)
	page := f.ask("GET", "/surfin/jobs", "", "Cookie", session).is(http.StatusOK)
	require.Contains(t, page.text, `href="/surfin/jobs/quick"`)
	require.Contains(t, page.text, `data-stream="/surfin/v1/stream"`)
	for _, asset := range strings.Split(page.text, `"`) {
		if strings.HasPrefix(asset, "/surfin/static/") {
			f.ask("GET", asset, "").is(http.StatusOK)
		}
	}
	f.hears(session, func() {
		f.ask("POST", "/surfin/v1/jobs/quick/run", "{}", "Cookie", session, "Content-Type", "application/json").is(http.StatusOK)
	})
	f.checksOfThePage(wallToken)
}

// hears listens to the stream, and acts: the event must come through, at once.
func (f *fronted) hears(session string, act func()) {
	f.t.Helper()
	ctx, end := context.WithTimeout(f.t.Context(), 30*time.Second)
	defer end()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://batch.example/surfin/v1/stream?topic=execution", nil)
	require.NoError(f.t, err)
	r.Header.Set("Cookie", session)
	got, err := f.client.Do(r)
	require.NoError(f.t, err)
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	require.True(f.t, lines.Scan())
	require.Equal(f.t, ": listening", lines.Text())
	act()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: execution") {
			return
		}
	}
	require.Fail(f.t, "no event came through the proxy", "%v", lines.Err())
}

// checksOfThePage runs the commands of its last table.
func (f *fronted) checksOfThePage(viewer string) {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "howto", "securing.md"))
	require.NoError(f.t, err)
	ran := 0
	for line := range strings.Lines(string(text)) {
		command, answer, is := strings.Cut(strings.TrimPrefix(line, "| `curl -i "), "` | ")
		if !is || !strings.Contains(command, "https://HOST") {
			continue
		}
		method, address, headers := http.MethodGet, "", []string(nil)
		words := commandWords(f.t, "surfin "+strings.ReplaceAll(command, "TOKEN", viewer))
		for i := 0; i < len(words); i++ {
			switch words[i] {
			case "-X":
				i++
				method = words[i]
			case "-H":
				i++
				name, value, _ := strings.Cut(words[i], ": ")
				headers = append(headers, name, value)
			case "-u":
				i++
				name, token, _ := strings.Cut(words[i], ":")
				r := &http.Request{Header: http.Header{}}
				r.SetBasicAuth(name, token)
				headers = append(headers, "Authorization", r.Header.Get("Authorization"))
			default:
				address = words[i]
			}
		}
		status := http.StatusUnauthorized // "401" and "the same"
		if strings.HasPrefix(answer, "403") {
			status = http.StatusForbidden
		}
		f.through(f.client, method, strings.Replace(address, "HOST", "batch.example", 1), "", headers...).is(status)
		ran++
	}
	require.Equal(f.t, 3, ran)
}

// Rule AP9.
func TestAProxyThatSignsUsersInDoesAsThePageSays(t *testing.T) {
	t.Parallel()
	settings := strings.NewReplacer("10.1.2.4:8321", "127.0.0.1:0", "10.1.2.3 ", "127.0.0.1 ").Replace(securingBlock(t, "user_header")) + "  base_path: /surfin\n"
	f := behindNginx(t, settings, func(location string) string {
		user := strings.Replace(location, `proxy_set_header X-Forwarded-User "";`, "proxy_set_header X-Forwarded-User $user;", 1)
		groups := strings.Replace(user, `proxy_set_header X-Forwarded-Groups "";`, "proxy_set_header X-Forwarded-Groups $groups;", 1)
		require.NotEqual(t, user, groups)
		return `set $user $remote_user; set $groups ""; if ($remote_user = bob) { set $groups "staff"; }
auth_basic "sign in"; auth_basic_user_file users;
` + groups
	})
	as := func(name, method, path string, headers ...string) reply {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(name, "secret")
		return f.ask(method, path, "", append([]string{"Authorization", r.Header.Get("Authorization")}, headers...)...)
	}
	f.ask("GET", "/surfin/v1/me", "").is(http.StatusUnauthorized)
	require.Contains(t, as("anna", "GET", "/surfin/v1/me").is(http.StatusOK).text, `"role":"operator"`)
	require.Contains(t, as("bob", "GET", "/surfin/v1/me").is(http.StatusOK).text, `"role":"viewer"`)
	as("anna", "POST", "/surfin/v1/recover", "Sec-Fetch-Site", "same-origin").is(http.StatusOK)
	as("bob", "POST", "/surfin/v1/recover").is(http.StatusForbidden)
	as("eve", "GET", "/surfin/v1/me").is(http.StatusForbidden)
	as("eve", "GET", "/surfin/", "X-Forwarded-User", "anna", "X-Forwarded-Groups", "batch-operators").is(http.StatusForbidden)
	require.Contains(t, as("bob", "GET", "/surfin/").is(http.StatusOK).text, "read only, as bob")

	direct := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).DialContext}}
	f.through(direct, "GET", "http://"+f.address+"/v1/executions", "", "X-Forwarded-User", "anna").is(http.StatusForbidden)
	f.through(direct, "GET", "http://"+f.address+"/v1/executions", "", "X-Forwarded-User", "anna", "X-Forwarded-For", "127.0.0.1").is(http.StatusForbidden)
	f.through(direct, "GET", "http://"+f.address+"/v1/executions", "", "Authorization", "Bearer "+wallToken).is(http.StatusOK)
}

// Rule AP8.
func TestTheFirstHourIsAsThePagesSay(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"jobs/quick.yaml": servedJob})
	page := blocks(t, "console.md")
	require.Equal(t, "surfin serve --jobs jobs/\n", page[0].text)
	server := s.serve(commandWords(t, page[0].text)[1:]...)
	printed, _, found := strings.Cut(blocks(t, "securing.md")[0].text, "http://127.0.0.1:8321/login?code=…")
	require.True(t, found)
	server.await(printed)
	link, _, _ := strings.Cut(server.out.String()[strings.Index(server.out.String(), printed)+len(printed):], "\n")
	f := &fronted{served: server}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	at := "http://" + server.address
	f.through(client, "POST", at+"/v1/jobs/quick/run", "{}", "Content-Type", "application/json").is(http.StatusUnauthorized)
	session, _, _ := strings.Cut(f.through(client, "GET", link, "").is(http.StatusSeeOther).header.Get("Set-Cookie"), ";")
	f.through(client, "GET", link, "").is(http.StatusForbidden)
	f.through(client, "POST", at+"/v1/jobs/quick/run", "{}", "Content-Type", "application/json", "Cookie", session).is(http.StatusOK)
	for _, path := range []string{"/", "/executions", "/?tz=Europe/Berlin", "/executions/1", "/executions/1/log", "/executions/1/definition"} {
		got := f.through(client, "GET", at+path, "").is(http.StatusOK)
		if strings.Contains(path, "tz=") {
			require.Contains(t, got.text, "Times: Europe/Berlin")
		}
	}
}

// securingBlock is the settings file of docs/howto/securing.md that has a key.
func securingBlock(t *testing.T, key string) string {
	t.Helper()
	for _, b := range blocks(t, "securing.md") {
		if b.language == "yaml" && strings.HasPrefix(b.text, "# surfin.yaml\n") && strings.Contains(b.text, key) {
			return strings.Replace(b.text, "127.0.0.1:8321", "127.0.0.1:0", 1)
		}
	}
	require.Fail(t, "the page has no settings with "+key)
	return ""
}

func program(t *testing.T, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	require.Fail(t, name+" is neither on PATH nor in /usr/sbin: tools/ensure "+name)
	return ""
}

func selfSigned(t *testing.T, folder string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "batch.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"batch.example"},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write(t, filepath.Join(folder, "server.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	write(t, filepath.Join(folder, "server.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
