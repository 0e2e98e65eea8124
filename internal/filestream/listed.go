package filestream

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Listed is a file that a step reads, in its state when the step listed it.
type Listed struct {
	Path string
	Mark string
}

// Keys of a step's context: the list of the files, and, for a partition, the path and the mark of
// its file.
const (
	ListKey     = core.FilesKey
	PartPathKey = "path"
	PartMarkKey = "surfin.file"
)

// Changed describes how the file differs; empty if it does not. gone means that it is missing.
func (f Listed) Changed(ctx context.Context) (what string, gone bool, err error) {
	info, err := place.Stat(ctx, f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist any more", true, nil
	case err != nil:
		return "", false, err
	case info.Mark() != f.Mark:
		return "its size or modification time is different", false, nil
	}
	return "", false, nil
}

// maxList bounds the list in the step's context (rule D4): some hundred thousand files.
const maxList = core.MaxFilesBytes

// EncodeList returns the stored form of the list.
func EncodeList(files []Listed) (string, error) {
	var text bytes.Buffer
	zip := gzip.NewWriter(&text)
	for _, f := range files {
		if _, err := fmt.Fprintf(zip, "%s\t%s\n", f.Path, f.Mark); err != nil {
			return "", err
		}
	}
	if err := zip.Close(); err != nil {
		return "", err
	}
	list := base64.StdEncoding.EncodeToString(text.Bytes())
	if len(list) > maxList {
		return "", fmt.Errorf("the list of %d files is too long to be stored for a restart (%d bytes, more than the allowed %d): use partitions, partition: {by: {files: GLOB}}", len(files), len(list), maxList)
	}
	return list, nil
}

// DecodeList reads a text written by EncodeList.
func DecodeList(list string) ([]Listed, error) {
	packed, err := base64.StdEncoding.DecodeString(list)
	if err != nil {
		return nil, err
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(zip, 512<<20))
	if err != nil {
		return nil, err
	}
	var files []Listed
	for line := range strings.Lines(string(text)) {
		path, mark, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			return nil, fmt.Errorf("%q is not a file with its mark", line)
		}
		files = append(files, Listed{path, mark})
	}
	return files, nil
}

// ReadBy returns the files that a step has read to the end, by the records of the step, first, and
// of its partitions: those that share a file must all have read it. ErrNoList means that the step keeps no list.
func ReadBy(records []core.StepExecution) ([]Listed, error) {
	var files []Listed
	found := false
	shared := map[string]bool{} // of each partitioned file, whether all parts have read it
	for i, record := range records {
		if record.Context == nil {
			continue
		}
		list, listed := record.Context.Get(ListKey)
		path, parted := record.Context.Get(PartPathKey)
		if isPart := i > 0; !listed && !(isPart && parted) {
			continue
		}
		found = true
		switch {
		case record.Status != core.StatusCompleted:
			if !listed {
				shared[fmt.Sprint(path)] = false
			}
		case listed:
			more, err := DecodeList(fmt.Sprint(list))
			if err != nil {
				return nil, fmt.Errorf("the list of the files of step %s is unreadable: %w", record.Name, err)
			}
			files = append(files, more...)
		default:
			mark, _ := record.Context.Get(PartMarkKey)
			text, _ := mark.(string)
			if _, twice := shared[fmt.Sprint(path)]; !twice {
				shared[fmt.Sprint(path)] = true
				files = append(files, Listed{fmt.Sprint(path), text})
			}
		}
	}
	if !found {
		return nil, ErrNoList
	}
	return slices.DeleteFunc(files, func(f Listed) bool { whole, parted := shared[f.Path]; return parted && !whole }), nil
}

// ErrNoList reports that a step has no list of the files that it reads.
var ErrNoList = errors.New("it has no list of files: only the reader and the partitioner `files` store one")
