package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/surfin-batch/surfin/internal/place/objects"
)

// bucket is one bucket of a store. minio-go repeats requests that fail for a moment.
type bucket struct {
	core *minio.Core
	name string
}

// partKey is the metadata of an object that was published from a part.
const partKey = "Surfin-Part"

func (b *bucket) Head(ctx context.Context, key string) (objects.Object, error) {
	info, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if err != nil {
		return objects.Object{}, b.failed(err)
	}
	o := object(info)
	o.Part = info.Metadata.Get("X-Amz-Meta-" + partKey)
	return o, nil
}

func object(info minio.ObjectInfo) objects.Object {
	return objects.Object{Key: info.Key, Size: info.Size, Modified: info.LastModified, Tag: strings.Trim(info.ETag, `"`)}
}

func (b *bucket) Get(ctx context.Context, of objects.Object, from int64) (io.ReadCloser, error) {
	options := minio.GetObjectOptions{}
	if of.Tag != "" {
		if err := options.SetMatchETag(of.Tag); err != nil {
			return nil, err
		}
	}
	if from > 0 {
		if err := options.SetRange(from, 0); err != nil {
			return nil, err
		}
	}
	if of.Size == 0 {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	body, info, _, err := b.core.GetObject(ctx, b.name, of.Key, options)
	switch {
	case err != nil:
		return nil, b.failed(err)
	case of.Tag != "" && strings.Trim(info.ETag, `"`) != of.Tag: // a store that ignores the condition
		return nil, errors.Join(objects.ErrChanged, body.Close())
	}
	return body, nil
}

const listed = 1000

func (b *bucket) List(ctx context.Context, prefix string, each func(objects.Object) error) error {
	return b.pages(ctx, prefix, "", func(page minio.ListBucketV2Result) error {
		for _, info := range page.Contents {
			if err := each(object(info)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bucket) Folders(ctx context.Context, prefix string) (list []string, err error) {
	err = b.pages(ctx, prefix, "/", func(page minio.ListBucketV2Result) error {
		for _, p := range page.CommonPrefixes {
			list = append(list, p.Prefix)
		}
		return nil
	})
	return list, err
}

func (b *bucket) pages(ctx context.Context, prefix, delimiter string, each func(minio.ListBucketV2Result) error) error {
	token := ""
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		page, err := b.core.ListObjectsV2(b.name, prefix, "", token, delimiter, listed)
		if err != nil {
			return b.failed(err)
		}
		if err := each(page); err != nil {
			return err
		}
		if token = page.NextContinuationToken; !page.IsTruncated || token == "" {
			return nil
		}
	}
}

func (b *bucket) Put(ctx context.Context, key string, data []byte) error {
	_, err := b.core.Client.PutObject(ctx, b.name, key, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{DisableMultipart: true, SendContentMd5: true})
	return b.failed(err)
}

func (b *bucket) Remove(ctx context.Context, key string) error {
	return b.failed(b.core.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{}))
}

func (b *bucket) Begin(ctx context.Context, key, part string) (string, error) {
	options := minio.PutObjectOptions{}
	if part != "" {
		options.UserMetadata = map[string]string{partKey: part}
	}
	upload, err := b.core.NewMultipartUpload(ctx, b.name, key, options)
	return upload, b.failed(err)
}

func (b *bucket) Copy(ctx context.Context, key, upload string, n int, from objects.Object) (string, error) {
	done, err := b.core.CopyObjectPart(ctx, b.name, from.Key, b.name, key, upload, n, 0, -1, nil)
	return done.ETag, b.failed(err)
}

func (b *bucket) Send(ctx context.Context, key, upload string, n int, data []byte) (string, error) {
	done, err := b.core.PutObjectPart(ctx, b.name, key, upload, n, bytes.NewReader(data), int64(len(data)), minio.PutObjectPartOptions{})
	return done.ETag, b.failed(err)
}

func (b *bucket) Complete(ctx context.Context, key, upload string, tags []string) error {
	parts := make([]minio.CompletePart, len(tags))
	for i, tag := range tags {
		parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: tag}
	}
	_, err := b.core.CompleteMultipartUpload(ctx, b.name, key, upload, parts, minio.PutObjectOptions{})
	return b.failed(err)
}

// abortTries bounds the looks for pieces that were on their way while the upload was aborted.
const (
	abortTries = 20
	abortPause = 100 * time.Millisecond
)

func (b *bucket) Abort(ctx context.Context, key, upload string) error {
	if err := b.failed(b.core.AbortMultipartUpload(ctx, b.name, key, upload)); err != nil {
		return err
	}
	for range abortTries {
		_, err := b.core.ListObjectParts(ctx, b.name, key, upload, 0, 1)
		if err = b.failed(err); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := b.failed(b.core.AbortMultipartUpload(ctx, b.name, key, upload)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(abortPause):
		}
	}
	return fmt.Errorf("the upload %s of %s was aborted %d times, and still has pieces", upload, key, abortTries)
}

func (b *bucket) Uploads(ctx context.Context, prefix string) (list []objects.Upload, err error) {
	keyMarker, uploadMarker := "", ""
	for {
		page, err := b.core.ListMultipartUploads(ctx, b.name, prefix, keyMarker, uploadMarker, "", listed)
		if err != nil {
			return nil, b.failed(err)
		}
		for _, u := range page.Uploads {
			if !strings.HasPrefix(u.Key, prefix) {
				continue
			}
			parts, err := b.core.ListObjectParts(ctx, b.name, u.Key, u.UploadID, 0, 1)
			if err = b.failed(err); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			list = append(list, objects.Upload{Key: u.Key, ID: u.UploadID, Pieces: len(parts.ObjectParts), Begun: u.Initiated})
		}
		if !page.IsTruncated {
			return list, nil
		}
		keyMarker, uploadMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// failed turns an answer into an error of the port.
func (b *bucket) failed(err error) error {
	if err == nil {
		return nil
	}
	answer := minio.ToErrorResponse(err)
	switch {
	case answer.StatusCode == http.StatusPreconditionFailed:
		return fmt.Errorf("%w%w", objects.ErrChanged, quiet{err})
	case answer.Code == "NoSuchBucket":
		return fmt.Errorf("there is no bucket %s%w", b.name, quiet{fs.ErrNotExist})
	case slices.Contains([]string{"NoSuchKey", "NoSuchUpload", "NoSuchVersion"}, answer.Code), answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s%w", answer.Message, quiet{fs.ErrNotExist})
	case answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the store refused: %s (%s); see places in surfin.yaml", strings.TrimSuffix(answer.Message, "."), answer.Code)
	}
	return err
}

type quiet struct{ error }

func (quiet) Error() string { return "" }

func (q quiet) Unwrap() error { return q.error }
