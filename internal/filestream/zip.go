package filestream

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// CheckMember refuses a key `member` that is not a pattern, or has no archive to look in.
func CheckMember(member string, compression ReadCompression) error {
	if member == "" {
		return nil
	}
	if compression != "" && compression != CompressionAuto && compression != compressionZip {
		return fmt.Errorf("it names a file in a zip archive, but compression is %s: remove one of them", compression)
	}
	if _, err := path.Match(member, ""); err != nil {
		return fmt.Errorf("%q is not a pattern: a [ needs its ] (write a literal [ as \\[)", member)
	}
	return nil
}

func (in *Input) openMember() error {
	if in.file == nil {
		return errors.New("a zip archive cannot be read from the standard input: write it to a file first")
	}
	if in.print.Size == 0 {
		return errors.New("not readable as zip: the file is empty")
	}
	archive, err := zip.NewReader(io.NewSectionReader(in.file, 0, in.print.Size), in.print.Size)
	if err != nil {
		return in.notReadable(compressionOf("", compressionZip), err)
	}
	member, err := oneMember(archive, in.cfg.Member)
	if err != nil {
		return err
	}
	if member.Flags&1 != 0 {
		return fmt.Errorf("its file %s is encrypted: extract it first", member.Name)
	}
	r, err := member.Open()
	if err != nil {
		return fmt.Errorf("its file %s: %w", member.Name, err)
	}
	in.member = member.Name
	in.src = &inflated{r: r, in: in, form: compressionOf("", compressionZip)}
	return nil
}

func oneMember(archive *zip.Reader, pattern string) (*zip.File, error) {
	var files, found []*zip.File
	for _, f := range archive.File {
		// A Mac adds files about the files.
		if f.FileInfo().IsDir() || strings.HasPrefix(f.Name, "__MACOSX/") || path.Base(f.Name) == ".DS_Store" {
			continue
		}
		files = append(files, f)
		if pattern == "" || matches(pattern, f.Name) {
			found = append(found, f)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(files) == 0:
		return nil, errors.New("the zip archive contains no files")
	case len(found) == 0:
		return nil, fmt.Errorf("the zip archive has no file %s (member); it has %s", pattern, namesOf(files))
	case pattern == "":
		return nil, fmt.Errorf("the zip archive has %d files: select one with member: %s", len(found), namesOf(found))
	}
	return nil, fmt.Errorf("%d files of the zip archive are named %s (member), but only one can be read: %s", len(found), pattern, namesOf(found))
}

func matches(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	is, err := path.Match(pattern, name)
	return is && err == nil
}

func namesOf(files []*zip.File) string {
	const most = 10
	var names []string
	for _, f := range files {
		if len(names) == most {
			names = append(names, "...")
			break
		}
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}
