// Package s3 is the place s3://bucket/key: Amazon S3 and stores that speak its protocol.
//
// It imports internal/place with its folder objects, registry, assembly and minio-go. Module adds it to an application.
package s3
