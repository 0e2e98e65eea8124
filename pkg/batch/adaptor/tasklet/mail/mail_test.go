package mailtask

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type server struct {
	net.Listener
	secure  *tls.Config
	ca      string
	answers map[string]string

	mu    sync.Mutex
	said  []string
	mails []string
}

func serve(t *testing.T) *server {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	web.StartTLS() // for its certificate, which is for example.com
	web.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &server{Listener: l, secure: web.TLS, ca: ca, answers: map[string]string{}}
	var talks sync.WaitGroup
	talks.Add(1)
	go func() {
		defer talks.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.talk(conn)
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		talks.Wait()
	})
	return s
}

func (s *server) talk(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the client may have gone
	c := textproto.NewConn(conn)
	_ = c.PrintfLine("220 here")
	for {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(line, " ")
		s.mu.Lock()
		s.said = append(s.said, line)
		answer, special := s.answers[verb]
		delete(s.answers, verb)
		s.mu.Unlock()
		switch {
		case special:
			_ = c.PrintfLine("%s", answer)
		case verb == "EHLO":
			_ = c.PrintfLine("250-here\r\n250-STARTTLS\r\n250 AUTH PLAIN")
		case verb == "STARTTLS":
			_ = c.PrintfLine("220 go")
			conn = tls.Server(conn, s.secure)
			c = textproto.NewConn(conn)
		case verb == "DATA":
			_ = c.PrintfLine("354 go")
			text, err := io.ReadAll(c.DotReader())
			if err != nil {
				return
			}
			s.mu.Lock()
			s.mails = append(s.mails, string(text))
			s.mu.Unlock()
			_ = c.PrintfLine("250 taken")
		case verb == "QUIT":
			_ = c.PrintfLine("221 bye")
			return
		case verb == "AUTH":
			_ = c.PrintfLine("235 welcome")
		default:
			_ = c.PrintfLine("250 fine")
		}
	}
}

func (s *server) config() config {
	return config{
		Host: "127.0.0.1", Port: s.Addr().(*net.TCPAddr).Port, CA: s.ca, User: "batch", Password: "hidden", Timeout: 20 * time.Second,
		From: "Night Shift <batch@example.org>", To: []string{"a@example.org", "Bö <b@example.org>"}, Bcc: []string{"c@example.org", "a@example.org"},
		Subject: "Läufe", Text: "Größe: 1\n.\nend\n",
	}
}

func send(t *testing.T, cfg config) (*core.StepContribution, error) {
	t.Helper()
	task, err := newTasklet(cfg)
	require.NoError(t, err)
	c := &core.StepContribution{Context: core.NewExecutionContext()}
	return c, task.Execute(t.Context(), c)
}

func TestAMailGoesOutEncryptedWithItsAttachments(t *testing.T) {
	t.Parallel()
	s := serve(t)
	cfg := s.config()
	report := filepath.Join(t.TempDir(), "report.csv")
	require.NoError(t, os.WriteFile(report, []byte(strings.Repeat("1,2\n", 40)), 0o600))
	cfg.Attachments = []string{report}
	c, err := send(t, cfg)
	require.NoError(t, err)
	require.EqualValues(t, 3, c.Out["recipients"])
	require.Len(t, s.mails, 1)
	auth := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00batch\x00hidden"))
	require.Contains(t, s.said, auth)
	require.Contains(t, strings.Join(s.said, "|"), "RCPT TO:<a@example.org>|RCPT TO:<b@example.org>|RCPT TO:<c@example.org>|DATA")
	got, err := mail.ReadMessage(strings.NewReader(s.mails[0]))
	require.NoError(t, err)
	require.Equal(t, c.Out["message_id"], got.Header.Get("Message-ID"))
	require.Equal(t, "=?utf-8?q?L=C3=A4ufe?=", got.Header.Get("Subject"))
	require.Empty(t, got.Header.Get("Bcc"))
	require.NotContains(t, s.mails[0], "c@example.org")
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "Gr=C3=B6=C3=9Fe: 1")
	require.Contains(t, string(body), `filename=report.csv`)
	require.Contains(t, string(body), base64.StdEncoding.EncodeToString([]byte(strings.Repeat("1,2\n", 40)[:57])))
}

func TestWhatAServerRefusesIsAnErrorThatSaysWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for answer, again := range map[string]bool{"450 later": true, "550 no such user": false} {
		s.answers["RCPT"] = answer
		_, err := send(t, s.config())
		require.ErrorContains(t, err, "mail: 127.0.0.1: to a@example.org: "+answer[:3])
		require.Equal(t, again, exception.IsRetryable(err), answer)
		require.Empty(t, s.mails)
	}
	s.answers["EHLO"] = "250 here"
	_, err := send(t, s.config())
	require.ErrorContains(t, err, "the server does not support STARTTLS")
	require.Equal(t, "EHLO localhost", s.said[len(s.said)-1], "no password without encryption")
	cfg := s.config()
	cfg.CA = ""
	_, err = send(t, cfg)
	require.ErrorContains(t, err, "STARTTLS: ")
	cfg = s.config()
	cfg.Attachments, cfg.MaxSize = []string{s.ca}, registry.Size(10)
	_, err = send(t, cfg)
	require.ErrorContains(t, err, "larger than max_size (10 bytes)")
	require.Empty(t, s.mails)
}

func TestMistakesOfTheConfigurationAreRefused(t *testing.T) {
	t.Parallel()
	good := config{Host: "h", From: "a@b.c", To: []string{"a@b.c"}, Subject: "s"}
	for key, spoil := range map[string]func(c *config){
		"host":     func(c *config) { c.Host = "smtp://h" },
		"to":       func(c *config) { c.To = []string{"nobody"} },
		"from":     func(c *config) { c.From = "a@b.c\r\nBcc: d@e.f" },
		"subject":  func(c *config) { c.Subject = "a\nb" },
		"tls":      func(c *config) { c.TLS, c.User, c.Password = "none", "u", "p" },
		"password": func(c *config) { c.Password = "p" },
	} {
		c := good
		spoil(&c)
		_, err := newTasklet(c)
		var wrong *registry.ConfigError
		require.True(t, errors.As(err, &wrong), key)
		require.Equal(t, key, wrong.Key)
	}
}
