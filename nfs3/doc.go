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
//	permission.go  who may do what, by modes
//	memory.go    Memory: an FS in memory; memory_change.go: what changes directories, memory_data.go: data of files
//	directory.go Directory: an FS that is a directory of this machine; directory_open.go: from a handle to an object,
//	             directory_table.go: handles, directory_list.go, directory_change.go, directory_data.go, and
//	             directory_thread.go: acting for a caller
//
// Arguments and results, which encode themselves (package xdr), are where their procedure is: attr.go, setattr.go,
// access.go, lookup.go, read.go, write.go, create.go, remove.go, dir.go, fsinfo.go, mount.go.
package nfs3
