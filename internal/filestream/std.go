package filestream

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// openStdin can read only once, so a restart cannot continue.
func openStdin(cfg InputConfig, at *InputPosition) (*Input, error) {
	if at != nil {
		return nil, fmt.Errorf("cannot restart: %d bytes of the standard input were read, and it cannot be read again: provide it again and start over (--from-start), or write it to a file first", at.Offset)
	}
	in := &Input{cfg: cfg, src: os.Stdin, encoding: plainText}
	if cfg.Stdin != nil {
		in.src = cfg.Stdin
	}
	if err := in.decode(); err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return in, nil
}

type stdout struct {
	w    io.Writer
	text []byte
	base int64
}

// Written output cannot be read back, so a restart cannot continue from a position in it.
func (o *Output) openStdout(at *OutputPosition) error {
	if o.cfg.Append != nil {
		return errors.New("append is for files, but - is the standard output")
	}
	if at != nil {
		return fmt.Errorf("cannot restart: %d bytes were written to the standard output and cannot be continued: start over (--from-start), or write to a file", at.Offset)
	}
	o.std = &stdout{w: os.Stdout}
	if o.cfg.Stdout != nil {
		o.std.w = o.cfg.Stdout
	}
	o.at = OutputPosition{Path: o.cfg.Path, Form: o.form()}
	return nil
}

func (s *stdout) cut(offset int64) error {
	if offset < s.base || offset > s.base+int64(len(s.text)) {
		return fmt.Errorf("the standard output cannot go back to byte %d: %d bytes are written", offset, s.base)
	}
	s.text = s.text[:offset-s.base]
	return nil
}

func (s *stdout) flush() error {
	n, err := s.w.Write(s.text)
	s.base += int64(n)
	s.text = s.text[:copy(s.text, s.text[n:])]
	if err != nil {
		return fmt.Errorf("write to the standard output: %w", err)
	}
	return nil
}

func (o *Output) finishStdout() error {
	if o.finished {
		return nil
	}
	if err := o.end(); err != nil {
		return err
	}
	if err := o.Sync(); err != nil {
		return err
	}
	if err := o.std.flush(); err != nil {
		return err
	}
	o.finished = true
	return nil
}
