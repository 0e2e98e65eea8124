package csv

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

func (r *reader) preamble(ctx context.Context) error {
	r.rewindTo(r.in.Start(), 0)
	sep, skip := sepLine(r.in.Buffered(r.next)), int64(r.cfg.SkipLines)
	if sep != "" {
		if own, _, err := r.cfg.delimiter(); err != nil || r.cfg.Delimiter != "" && own != "," && own != sep {
			return fmt.Errorf("%s:1: the first line, sep=%s, sets the delimiter to %q, but the key delimiter is %q", r.cfg.Path, sep, sep, own)
		}
		skip = max(skip, 1)
	}
	r.useDelimiter(sep)
	offset, lines := r.next, int64(0)
	for ; lines < skip; lines++ {
		after, err := r.in.SkipLine(ctx, offset)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", r.cfg.Path, lines+1, err)
		}
		if after == offset {
			break
		}
		offset = after
	}
	r.rewindTo(offset, lines)
	return nil
}

// as Excel writes it: sep=; with or without quotes
func sepLine(text []byte) string {
	const longest = len(`"sep=`) + utf8.UTFMax + len(`"`)
	n := bytes.IndexAny(text[:min(len(text), longest+1)], "\r\n")
	if n < 0 && len(text) <= longest {
		n = len(text)
	}
	if n < 0 {
		return ""
	}
	line := string(text[:n])
	if len(line) > 1 && line[0] == '"' && line[len(line)-1] == '"' {
		line = line[1 : len(line)-1]
	}
	const sep = "sep="
	if len(line) <= len(sep) || !strings.EqualFold(line[:len(sep)], sep) {
		return ""
	}
	if _, err := character(line[len(sep):]); err != nil {
		return ""
	}
	return line[len(sep):]
}

func (r *reader) useDelimiter(sep string) {
	comma, runs, err := r.cfg.delimiter()
	if err != nil {
		return
	}
	r.sep = sep
	if sep != "" {
		comma, runs = sep, false
	}
	first, _ := utf8.DecodeRuneInString(comma)
	r.csv.comma, r.csv.runs = []byte(comma), runs
	r.csv.trim = r.cfg.Trim && !unicode.IsSpace(first) // else empty fields would be trimmed away
}

// The footer begins at the last lines that are neither blank nor comments. More text only moves it further,
// so a record before it stays a record.
func (r *reader) footerStart(text []byte, atEnd bool) int {
	end := len(text)
	for lines := 0; lines < r.footer && end > 0; {
		body := bytes.TrimSuffix(bytes.TrimSuffix(text[:end], []byte("\n")), []byte("\r"))
		begin := bytes.LastIndexByte(body, '\n') + 1
		if r.cr {
			begin = bytes.LastIndexAny(body, "\r\n") + 1
		}
		if r.inFooter(body[begin:], atEnd || end < len(text)) {
			lines++
		}
		end = begin
	}
	return end
}

// An incomplete line may become a comment.
func (r *reader) inFooter(line []byte, whole bool) bool {
	comment := r.csv.comment
	if len(comment) > 0 && (bytes.HasPrefix(line, comment) || !whole && bytes.HasPrefix(comment, line)) {
		return false
	}
	if n := blankRun(line); n < len(line) || r.csv.runs {
		return n < len(line)
	}
	return bytes.Contains(line, r.csv.comma)
}
