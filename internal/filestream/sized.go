package filestream

import (
	"errors"
	"io"
	"os"
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
