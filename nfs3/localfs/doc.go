// Package localfs has file systems for a server of NFS (package nfs3): [Directory] is a directory of this machine, which is never
// left, and [Memory] is files in memory.
//
//	d, err := localfs.OpenDirectory("/srv/data", nil)
//	...
//	nfs3.NewServer(d, &nfs3.ServerOptions{Export: "/data"}).Register(s)
//
// Both are an nfs3.FS: all they know of the protocol is its types. What a caller may do is decided by modes alone, in
// both alike. A change of a Directory is made by the kernel for the caller, where the process may act for others.
//
// # Limits
//
// A [Memory] has at most [MemoryOptions.MaxBytes] of data, and MaxFiles entries. A [Directory] keeps nothing open, and knows of
// 65536 objects where they are.
//
// # Layout
//
//	doc.go               this page
//	permission.go        what a caller may do, by modes
//	memory.go            Memory
//	memory_change.go     what changes its directories
//	memory_data.go       data of its files
//	directory.go         Directory
//	directory_open.go    from a handle to an object
//	directory_handle.go  handles, and the search for what they are of
//	directory_table.go   where objects are
//	directory_list.go    entries
//	directory_change.go  what changes directories
//	directory_data.go    data and attributes of files
//	directory_thread.go  a thread that acts for a caller
package localfs
