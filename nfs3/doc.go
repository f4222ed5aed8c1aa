// Package nfs3 is NFS version 3 and MOUNT version 3 (RFC 1813), the protocol with which Linux mounts
// files of another machine: a server, a client, and file systems to serve. Calls travel over TCP or RDMA
// by package rpc.
//
// # Layout
//
//	doc.go       this page
//	program.go   Program, MountProgram: procedures, bounds, what travels by reference
//	status.go    Status: the errors of the protocol
//	limits.go    bounds of what is decoded
//	fs.go        FS: a file system by handles
//
// Arguments and results, which encode themselves (package xdr), are where their procedure is: attr.go, setattr.go,
// access.go, lookup.go, read.go, write.go, create.go, remove.go, dir.go, fsinfo.go, mount.go.
package nfs3
