package mailtask

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

const idKey = "surfin.mail.id"

// Execute sends the mail.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	id, err := t.id(ctx, c)
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	message, err := t.message(confine.From(ctx), id, time.Now())
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	recipients := t.recipients()
	if err := t.send(ctx, recipients, message); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("mail: %w", cause)
		}
		return fmt.Errorf("mail: %s: %w", t.config.Host, classified(err))
	}
	c.Out = map[string]any{"recipients": int64(len(recipients)), "message_id": id}
	return nil
}

// A retry may avoid the answers 4xx of a server.
func classified(err error) error {
	var answer *textproto.Error
	if errors.As(err, &answer) && answer.Code/100 == 4 {
		return exception.Retryable("", err)
	}
	return err
}

// one Message-ID for all attempts at the step, stored before the first
func (t *tasklet) id(ctx context.Context, c *core.StepContribution) (string, error) {
	_, domain, _ := strings.Cut(addressOf(t.config.From), "@")
	made := "<" + rand.Text() + "@" + domain + ">"
	if c.Context == nil {
		return made, nil
	}
	if stored, ok := c.Context.Get(idKey); ok {
		return fmt.Sprint(stored), nil
	}
	if err := c.Context.Put(idKey, made); err != nil || c.Save == nil {
		return made, err
	}
	return made, c.Save(ctx)
}

func addressOf(text string) string {
	address, err := mail.ParseAddress(text)
	if err != nil {
		return text
	}
	return address.Address
}

func (t *tasklet) recipients() []string {
	seen := map[string]bool{}
	var list []string
	for _, some := range [][]string{t.config.To, t.config.Cc, t.config.Bcc} {
		for _, text := range some {
			if address := addressOf(text); !seen[address] {
				seen[address] = true
				list = append(list, address)
			}
		}
	}
	return list
}

// The end of ctx closes the connection.
func (t *tasklet) send(ctx context.Context, recipients []string, message []byte) (err error) {
	ctx, cancel := context.WithTimeout(ctx, t.config.Timeout)
	defer cancel()
	secure, err := t.secure(confine.From(ctx))
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(t.config.Host, strconv.Itoa(t.config.Port)))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() //nolint:errcheck // it ends pending reads
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	if t.config.TLS == fromTLS {
		conn = tls.Client(conn, secure)
	}
	client, err := smtp.NewClient(conn, t.config.Host)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer client.Close() //nolint:errcheck // the server has answered, or the error is known
	if err := t.greet(client, secure); err != nil {
		return err
	}
	return deliver(client, addressOf(t.config.From), recipients, message)
}

func (t *tasklet) secure(disk *confine.Files) (*tls.Config, error) {
	secure := &tls.Config{ServerName: t.config.Host, MinVersion: tls.VersionTLS12}
	if t.config.CA == "" {
		return secure, nil
	}
	text, err := disk.ReadFile(t.config.CA)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	if secure.RootCAs = x509.NewCertPool(); !secure.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ca: %s has no certificate", t.config.CA)
	}
	return secure, nil
}

// A server without encryption or login is an error: the mail would be sent in another way than the job
// says.
func (t *tasklet) greet(client *smtp.Client, secure *tls.Config) error {
	if t.config.TLS == startTLS {
		if ok, _ := client.Extension("STARTTLS"); !ok {
			return errors.New("the server does not support STARTTLS (tls: tls is for servers that are encrypted from the start)")
		}
		if err := client.StartTLS(secure); err != nil {
			return fmt.Errorf("STARTTLS: %w", err)
		}
	}
	if t.config.User == "" {
		return nil
	}
	if ok, _ := client.Extension("AUTH"); !ok {
		return errors.New("the server does not support user and password")
	}
	if err := client.Auth(smtp.PlainAuth("", t.config.User, t.config.Password, t.config.Host)); err != nil {
		return fmt.Errorf("log in as %s: %w", t.config.User, err)
	}
	return nil
}

// Errors after the server's answer to the mail do not matter.
func deliver(client *smtp.Client, from string, recipients []string, message []byte) error {
	if err := client.Mail(from); err != nil {
		return fmt.Errorf("from %s: %w", from, err)
	}
	for _, to := range recipients {
		if err := client.Rcpt(to); err != nil {
			return fmt.Errorf("to %s: %w", to, err)
		}
	}
	w, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(message); err != nil {
		return errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = client.Quit() //nolint:errcheck // the server has the mail
	return nil
}
