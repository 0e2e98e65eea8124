package filestream

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"
)

func compressedText() string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "%d,name %d\n", i, i*7)
	}
	return b.String()
}

// bzip2 files of that text, and of no text: Go cannot write them.
const (
	bzip2Text = "QlpoOTFBWSZTWZ4fi0EAATZZAAAQQAR/4CIDUAPwB7oXqgAxQ00wAFU8NPU/1UqekwRVT/zKT3qFVNAVT/1PSqaPT9UQCU9JJN6TVNHqb1e1+8n93vnnFwCGAGxkCg0DQKDIGxgBC4BxYAIYAbGQKDQNAoMgbGAELgHFgA/7Wt6tb06ldc1O9KDIGxgBC4BxYAIYAbGQKDQNAoMgbGAELgHFgA4tcA4uAQwA2MgUPMy1VE47JJJJ5WU3IkkjtxNV1qDkrvuDuG2jaba3uDuVm71OvnfebzN4AEHlhhd3d7uxu78vvT0TMzEzMxMxVVMiqXy9OlFJIoqiqKbstbUVRVFJIos7bLFUUkiiqKvjdxiVGJ55LQ0xovkt0xKjHnJbRpiF8lppiVHlxEq2Ncmuvnedb85mZmbzC/UXuGABmxmYp2unKSqZm/mnK1pzM5uMGxgXE0mq4lxcAtjDmh549e+N89d3d3duj72fdoAG7s5F6umZv5pytaczvE0mq4lxcAtjBsYBbGDYwCuffWZvGAAEHllhwAGbu16dnp5UslKoLTa1txuttc245QlXSl0pVG97762ZvAGAF35B9YcAG7uqVnLG3F221rbjFCVdKXSlUdzbXNuO5t8/fWZu3wABgqV+8ZgcAbu7OLOgUJV0pRqSjMba5tx3Ntc245QlXSlvR731mb2gABfleFgBwHbu9bFH3m2sbcA21rbjVCVdKXSlUdzbXNuN731ozN4DAAUnvey8AODd3XS+5a24FCVdKWylUbrbXNuO5trm3HKEuT99Zn28ABgVfkYZgAcbu7Wz92SlUX821rbjMba5txyhKum743cOc1rXoFBXoFBXoFBXoFBX+LuSKcKEhPD8Wgg="
	bzip2None = "QlpoORdyRThQkAAAAAA="
)

// compressedForms are the text in each form, and the bytes of an empty text.
func compressedForms(t testing.TB) map[string][2]string {
	forms := map[string][2]string{"gzip": {gzipped(t, compressedText()), gzipped(t, "")}}
	decoded := func(text string) string {
		data, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		return string(data)
	}
	forms["bzip2"] = [2]string{decoded(bzip2Text), decoded(bzip2None)}
	var both [2]string
	for i, text := range []string{compressedText(), ""} {
		enc, err := zstd.NewWriter(nil, zstd.WithZeroFrames(true))
		require.NoError(t, err)
		both[i] = string(enc.EncodeAll([]byte(text), nil))
	}
	forms["zstd"] = both
	for i, text := range []string{compressedText(), ""} {
		var b bytes.Buffer
		w, err := xz.NewWriter(&b)
		require.NoError(t, err)
		_, err = io.WriteString(w, text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		both[i] = b.String()
	}
	forms["xz"] = both
	for i, text := range []string{compressedText(), ""} {
		both[i] = archive(t, "in/data.csv", text)
	}
	forms["zip"] = both
	return forms
}

func archive(t testing.TB, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		require.NoError(t, err)
		_, err = io.WriteString(f, files[i+1])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

func TestEachCompressionIsReadAndRestartedAndACutFileNeverEnds(t *testing.T) {
	t.Parallel()
	text := compressedText()
	for name, content := range compressedForms(t) {
		suffix := compressionOf("", name).suffix
		var cfg InputConfig
		if name == compressionZip {
			cfg.Member = "*.csv"
		}
		in := input(t, "in"+suffix, content[0], cfg, nil)
		got, err := io.ReadAll(in)
		require.NoError(t, err, name)
		require.Equal(t, text, string(got), name)
		for _, offset := range []int64{0, 11, int64(len(text)) - 4, int64(len(text))} {
			at := in.Position(offset)
			again, err := OpenInput(t.Context(), in.cfg, &at)
			require.NoError(t, err, name)
			got, err := io.ReadAll(again)
			require.NoError(t, err, name)
			require.Equal(t, text[offset:], string(got), name)
			require.NoError(t, again.Close())
		}
		empty, err := io.ReadAll(input(t, "in", content[1], InputConfig{Compression: ReadCompression(name)}, nil))
		require.NoError(t, err, name)
		require.Empty(t, empty, name)
		if name != compressionZip {
			twice, err := io.ReadAll(input(t, "in"+strings.ToUpper(suffix), content[0]+content[1]+content[0], InputConfig{}, nil))
			require.NoError(t, err, name)
			require.Equal(t, text+text, string(twice), name)
			none, err := io.ReadAll(input(t, "in"+suffix, "", InputConfig{}, nil))
			require.NoError(t, err, name)
			require.Empty(t, none, name)
		}
		whole := content[0]
		if name != compressionZip {
			whole += content[0][:len(content[0])/2] // a second one that is cut
		}
		for cut := 1; cut < len(whole); cut++ {
			if cut > 40 && cut%11 != 0 && (cut < len(content[0])-30 || cut > len(content[0])+40) || cut == len(content[0]) {
				continue
			}
			path := filepath.Join(t.TempDir(), "in"+suffix)
			require.NoError(t, os.WriteFile(path, []byte(whole[:cut]), 0o600))
			cfg.Path = path
			in, err := OpenInput(t.Context(), cfg, nil)
			if err == nil {
				_, err = io.ReadAll(in)
				require.NoError(t, in.Close())
			}
			require.Error(t, err, "%s cut after %d of %d bytes", name, cut, len(content[0]))
			require.ErrorContains(t, err, "not readable as "+name, "%s cut after %d of %d bytes", name, cut, len(content[0]))
		}
	}
}

func TestACompressedFileThatItsNameDoesNotShowIsRefusedWithTheCure(t *testing.T) {
	t.Parallel()
	open := func(name, content string, cfg InputConfig) error {
		cfg.Path = filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(cfg.Path, []byte(content), 0o600))
		in, err := OpenInput(context.Background(), cfg, nil)
		if err == nil {
			require.NoError(t, in.Close())
		}
		return err
	}
	for name, content := range compressedForms(t) {
		suffix := compressionOf("", name).suffix
		for _, cfg := range []InputConfig{{}, {Compression: "auto"}, {Encoding: "latin1"}} {
			if name == compressionZip {
				for _, file := range []string{"in.csv", "in.csv.zip"} {
					require.ErrorContains(t, open(file, content[0], cfg), file+": it is a zip archive: set compression: zip to read its only file, or member to name one of them")
				}
				continue
			}
			require.ErrorContains(t, open("in.csv", content[0], cfg), fmt.Sprintf("in.csv: it is compressed with %s, but its name does not show it: set compression: %s, or rename it to in.csv%s", name, name, suffix))
		}
		require.NoError(t, open("in.csv", content[0], InputConfig{Compression: "none", Encoding: "latin1"}))
		if name != compressionZip {
			require.ErrorContains(t, open("in.csv"+suffix, "plain text, whatever its name says", InputConfig{}), "(compression: none reads it as it is)", name)
		}
	}
	require.NoError(t, open("in.csv", "BZh,PK\n", InputConfig{}), "a text may begin so")
	require.ErrorContains(t, open("in.xlsx", archive(t, "sheet", "x"), InputConfig{}), "it is a workbook: save the sheet as csv first")
	tar := "in.csv" + strings.Repeat("\x00", 251) + "ustar\x0000" + strings.Repeat("\x00", 300)
	require.ErrorContains(t, open("in.csv", tar, InputConfig{}), "it is a tar archive: extract its files first")
	require.ErrorContains(t, open("in.tar.gz", gzipped(t, tar), InputConfig{}), "it is a tar archive: extract its files first")
}

func TestOneFileOfAnArchiveIsRead(t *testing.T) {
	t.Parallel()
	several := archive(t, "a/", "", "a/one.csv", "one\n", "a/two.csv", "two\n", "__MACOSX/a/._one.csv", "x", "readme.txt", "read\n")
	for member, want := range map[string]string{
		"a/one.csv": "one\n", "two*": "two\n", "*.txt": "read\n", "a/t*": "two\n",
		"":        "!the zip archive has 3 files: select one with member: a/one.csv, a/two.csv, readme.txt",
		"*.csv":   "!2 files of the zip archive are named *.csv (member), but only one can be read: a/one.csv, a/two.csv",
		"b/*.csv": "!the zip archive has no file b/*.csv (member); it has a/one.csv, a/two.csv, readme.txt",
	} {
		path := filepath.Join(t.TempDir(), "in.zip")
		require.NoError(t, os.WriteFile(path, []byte(several), 0o600))
		in, err := OpenInput(t.Context(), InputConfig{Path: path, Member: member, Compression: "zip"}, nil)
		if text, isError := strings.CutPrefix(want, "!"); isError {
			require.ErrorContains(t, err, path+": "+text, member)
			continue
		}
		require.NoError(t, err, member)
		got, err := io.ReadAll(in)
		require.NoError(t, err)
		require.Equal(t, want, string(got), member)
		require.NoError(t, in.Close())
		at := in.Position(2)
		_, err = OpenInput(t.Context(), InputConfig{Path: path, Member: "readme.txt"}, &at)
		if member != "*.txt" {
			require.ErrorContains(t, err, "cannot restart: the step read "+in.member+" of the archive, but now it is readme.txt")
		}
	}
	require.ErrorContains(t, CheckMember("[", ""), "a [ needs its ]")
	require.ErrorContains(t, CheckMember("a.csv", "gzip"), "it names a file in a zip archive, but compression is gzip")
	path := filepath.Join(t.TempDir(), "in.csv")
	require.NoError(t, os.WriteFile(path, []byte("a\n"), 0o600))
	_, err := OpenInput(t.Context(), InputConfig{Path: path, Member: "a.csv"}, nil)
	require.ErrorContains(t, err, "its name is not one of a zip archive, but member names a file in one: set compression: zip")
}

func TestAZstdFileIsTakenUpWhereItIsCommitted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.zst")
	write := func(o *Output, text string) OutputPosition {
		_, err := o.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, o.Sync())
		return o.Position()
	}
	o := NewOutput(OutputConfig{Path: path, Trailer: []byte("end\n")})
	require.NoError(t, o.Open(t.Context(), nil))
	at := write(o, "one\n")
	require.NoError(t, o.Release(t.Context()))
	write(o, "lost\n")
	require.NoError(t, o.Close())
	o = NewOutput(OutputConfig{Path: path, Trailer: []byte("end\n")})
	require.NoError(t, o.Open(t.Context(), &at))
	at = write(o, "two\n")
	require.NoError(t, o.Release(t.Context()))
	require.NoError(t, o.Finish(t.Context()))
	in, err := OpenInput(t.Context(), InputConfig{Path: path}, nil)
	require.NoError(t, err)
	got, err := io.ReadAll(in)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	require.Equal(t, "one\ntwo\nend\n", string(got))
	o = NewOutput(OutputConfig{Path: path, Trailer: []byte("end\n")})
	require.NoError(t, o.Open(t.Context(), &at))
	require.True(t, o.Finished())

	empty := filepath.Join(t.TempDir(), "empty.zst")
	o = NewOutput(OutputConfig{Path: empty})
	require.NoError(t, o.Open(t.Context(), nil))
	require.NoError(t, o.Release(t.Context()))
	require.NoError(t, o.Finish(t.Context()))
	data, err := os.ReadFile(empty)
	require.NoError(t, err)
	require.NotEmpty(t, data)

	for _, name := range []string{"out.bz2", "out.xz", "out.ZIP"} {
		err := NewOutput(OutputConfig{Path: filepath.Join(t.TempDir(), name)}).Open(t.Context(), nil)
		require.ErrorContains(t, err, "are read only; compression: none writes plain text under this name")
	}
}
