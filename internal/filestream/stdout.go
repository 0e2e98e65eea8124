package filestream

import (
	"fmt"
	"io"
)

type stdout struct {
	w    io.Writer
	text []byte
	base int64
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
