// Package mailtask is the tasklet `mail`: it sends a mail by SMTP.
//
// It imports core and core/registry.
package mailtask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/mail"
	"reflect"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config configures the tasklet.
type config struct {
	Host     string `key:"host" required:"true" doc:"The mail server."`
	Port     int    `key:"port" doc:"Its port [587; with tls: tls 465, with tls: none 25]."`
	TLS      string `key:"tls" enum:"starttls,tls,none" default:"starttls" doc:"How the connection is encrypted: starttls requires encryption from the server, tls is encrypted from the start, none is not encrypted and allows no password."`
	CA       string `key:"ca" path:"true" doc:"A PEM file with the certificates to verify the server's [the system's]."`
	User     string `key:"user" doc:"The user to log in as [no login]."`
	Password string `key:"password" doc:"The password of the user, such as ${secret.smtp}."`

	From        string        `key:"from" required:"true" doc:"The sender: an address, or 'Name <address>'."`
	To          []string      `key:"to" item:"an address" required:"true" doc:"The recipients."`
	Cc          []string      `key:"cc" item:"an address" doc:"Recipients of copies."`
	Bcc         []string      `key:"bcc" item:"an address" doc:"Hidden recipients."`
	Subject     string        `key:"subject" required:"true" doc:"The subject, one line."`
	Text        string        `key:"text" doc:"The text; it may contain ${...}."`
	RowData     bool          `key:"row_data" default:"false" doc:"Whether job.error is the whole message here, which may contain values of rows; without it, job.error names the step and where to find the message (rule OP7)."`
	Attachments []string      `key:"attachments" item:"a file" path:"true" doc:"Files to attach."`
	MaxSize     registry.Size `key:"max_size" default:"10MB" doc:"The largest total size of the attachments; if they are larger, nothing is sent and the step fails."`
	Timeout     time.Duration `key:"timeout" default:"1m" doc:"How long sending may take."`
}

// SendsRowData implements trait.Sender.
func (c *config) SendsRowData() bool { return c.RowData }

const (
	startTLS = "starttls"
	fromTLS  = "tls"
	noTLS    = "none"
)

// Validate checks addresses, subject and server.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	if c.Host == "" || strings.ContainsAny(c.Host, " /:\r\n") {
		bad("host", "%q is not the name of a server; the port has its own key", c.Host)
	}
	if c.Port < 0 || c.Port > 65535 {
		bad("port", "%d is not a port", c.Port)
	}
	if len(c.To) == 0 {
		bad("to", "the recipients are missing")
	}
	for key, list := range map[string][]string{"from": {c.From}, "to": c.To, "cc": c.Cc, "bcc": c.Bcc} {
		for _, address := range list {
			if _, err := mail.ParseAddress(address); err != nil {
				bad(key, "%q is not an address, such as ops@example.org or Night Shift <ops@example.org>", address)
			}
		}
	}
	if strings.ContainsAny(c.Subject, "\r\n") {
		bad("subject", "it has a line break")
	}
	switch {
	case c.User == "" && c.Password != "":
		bad("password", "the user is missing")
	case c.User != "" && c.TLS == noTLS:
		bad("tls", "a password is not sent without encryption: use starttls or tls")
	}
	if c.Timeout < 0 {
		bad("timeout", "%s is less than 0", c.Timeout)
	}
	return errors.Join(errs...)
}

func results() []row.Field {
	return []row.Field{{Name: "recipients", Kind: row.Int}, {Name: "message_id", Kind: row.String}}
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "mail", Config: reflect.TypeFor[config](), NoTransaction: true, Results: results(),
		Summary: "sends a mail by SMTP, with attachments",
		Doc: `The step completes if the server accepts the mail for all recipients: if it rejects one, nothing
is sent. The results are ` + "`recipients`, their number, and `message_id`" + `. A failed connection and a response
4xx of the server can be tried again by ` + "`retry`" + ` of the step; a response 5xx cannot.

A mail is sent at least once: after a crash between the response and the end of the step, the restart sends it again, with
the same ` + "`Message-ID`" + `, by which many servers recognise it (rule TL8).`,
		Example: `job: report
parameters: {year: {type: int}}
flow:
- step: report
  tasklet:
    mail:
      host: smtp.example.org
      user: batch
      password: ${secret.smtp}
      from: Night Shift <batch@example.org>
      to: [ops@example.org]
      subject: "${job.name} of ${string(params.year)}"
      text: |
        The report is attached.
      attachments: [out/report.csv]
  retry: 3`,
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			c := *cfg.(*config)
			if b.Hide != nil {
				b.Hide("the password of the tasklet mail", c.Password)
			}
			return newTasklet(c)
		},
	}}
}

// newTasklet checks config.
func newTasklet(cfg config) (core.Tasklet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.TLS = cmp.Or(cfg.TLS, startTLS)
	cfg.Port = cmp.Or(cfg.Port, map[string]int{startTLS: 587, fromTLS: 465, noTLS: 25}[cfg.TLS])
	cfg.MaxSize, cfg.Timeout = cmp.Or(cfg.MaxSize, 10<<20), cmp.Or(cfg.Timeout, time.Minute)
	return &tasklet{config: cfg}, nil
}

type tasklet struct{ config config }
