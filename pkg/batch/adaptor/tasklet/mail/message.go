package mailtask

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"path/filepath"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
)

func (t *tasklet) message(disk *confine.Files, id string, now time.Time) ([]byte, error) {
	var out bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&out, "%s: %s\r\n", name, value) }
	header("Date", now.Format(time.RFC1123Z))
	header("Message-ID", id)
	header("From", addresses([]string{t.config.From}))
	header("To", addresses(t.config.To))
	if len(t.config.Cc) > 0 {
		header("Cc", addresses(t.config.Cc))
	}
	header("Subject", mime.QEncoding.Encode("utf-8", t.config.Subject))
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	if len(t.config.Attachments) == 0 {
		header("Content-Type", textType)
		header("Content-Transfer-Encoding", "quoted-printable")
		out.WriteString("\r\n")
		err := printable(&out, t.config.Text)
		return out.Bytes(), err
	}
	parts := multipart.NewWriter(&out)
	header("Content-Type", "multipart/mixed; boundary="+parts.Boundary())
	out.WriteString("\r\n")
	if err := t.parts(disk, parts); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

const textType = "text/plain; charset=utf-8"

func addresses(list []string) string {
	texts := make([]string, len(list))
	for i, text := range list {
		texts[i] = text
		if address, err := mail.ParseAddress(text); err == nil {
			texts[i] = address.String()
		}
	}
	return strings.Join(texts, ", ")
}

func (t *tasklet) parts(disk *confine.Files, parts *multipart.Writer) error {
	w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {textType}, "Content-Transfer-Encoding": {"quoted-printable"}})
	if err == nil {
		err = printable(w, t.config.Text)
	}
	if err != nil {
		return err
	}
	left := int64(t.config.MaxSize)
	for _, path := range t.config.Attachments {
		content, err := attachment(disk, path, left)
		if err != nil {
			return err
		}
		if content == nil {
			return fmt.Errorf("attachments: with %s they are larger than max_size (%d bytes)", path, int64(t.config.MaxSize))
		}
		left -= int64(len(content))
		if err := attach(parts, filepath.Base(path), content); err != nil {
			return err
		}
	}
	return parts.Close()
}

// nil means that the file is longer
func attachment(disk *confine.Files, path string, most int64) ([]byte, error) {
	if info, err := disk.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("attachments: %s is not a regular file", path)
	}
	f, err := disk.Open(path)
	if err != nil {
		return nil, fmt.Errorf("attachments: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("attachments: %w", err)
	case int64(len(content)) > most:
		return nil, nil
	case content == nil:
		return []byte{}, nil
	}
	return content, nil
}

func attach(parts *multipart.Writer, name string, content []byte) error {
	kind := mime.TypeByExtension(filepath.Ext(name))
	if kind == "" {
		kind = "application/octet-stream"
	}
	w, err := parts.CreatePart(textproto.MIMEHeader{
		"Content-Type": {kind}, "Content-Transfer-Encoding": {"base64"},
		"Content-Disposition": {mime.FormatMediaType("attachment", map[string]string{"filename": name})},
	})
	if err != nil {
		return err
	}
	const line = 57
	for ; len(content) > line; content = content[line:] {
		if _, err := fmt.Fprintf(w, "%s\r\n", base64.StdEncoding.EncodeToString(content[:line])); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "%s\r\n", base64.StdEncoding.EncodeToString(content))
	return err
}

// ASCII in lines of at most 76 characters
func printable(w io.Writer, text string) error {
	q := quotedprintable.NewWriter(w)
	if _, err := io.WriteString(q, text); err != nil {
		return err
	}
	return q.Close()
}
