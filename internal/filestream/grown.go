package filestream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// sized reads a file up to its size when it was opened: later text may be half of a record.
type sized struct {
	file *os.File
	left int64
}

// Read fails if the file has become shorter: the missing part was not read.
func (s *sized) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.file.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	if errors.Is(err, io.EOF) && s.left > 0 {
		err = errShrank
	}
	return n, err
}

var errShrank = errors.New("the file became shorter")

// If the file has become longer, the text after the last Keep is a record that may end in the added
// part; blanks are not.
func (in *Input) ended(err error) error {
	if in.file == nil {
		return err
	}
	cut := errors.Is(err, io.EOF) && in.isPending() || errors.Is(err, io.ErrUnexpectedEOF)
	if !cut && !errors.Is(err, errShrank) {
		return err
	}
	info, statErr := in.file.Stat()
	switch {
	case statErr != nil:
		return statErr
	case errors.Is(err, errShrank):
		return exception.Fatal("", fmt.Errorf("the file became shorter while it was read: it had %d bytes when it was opened, and now has %d", in.print.Size, info.Size()))
	case info.Size() <= in.print.Size:
		return err
	}
	return exception.Fatal("", fmt.Errorf("the file grew while it was read: it had %d bytes when it was opened, now has %d, and the record that begins here was incomplete; load the file when it is complete (the tasklet wait_file with stable waits for that)", in.print.Size, info.Size()))
}

func (in *Input) isPending() bool {
	from := min(max(in.keep-in.base, 0), int64(len(in.buf)))
	return len(bytes.Trim(in.buf[from:], " \t\r\n")) > 0
}
