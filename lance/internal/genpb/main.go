// Command genpb turns the .proto files below a directory into .pb.go files next
// to them. It is protoc and protoc-gen-go in one Go program, so that the versions
// in go.mod are all that generation depends on.
//
//	go run ./lance/internal/genpb -dir lance/internal/pb
//
// Imports between the files are paths relative to the directory, and each file's
// go_package option decides the Go package, as with protoc. The output depends on
// nothing but the .proto files and the two pinned modules.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	dir := flag.String("dir", ".", "root of the .proto files, and of the output")
	flag.Parse()
	if err := generate(context.Background(), *dir); err != nil {
		fmt.Fprintln(os.Stderr, "genpb:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, dir string) error {
	sources, err := protoFiles(dir)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("no .proto files below %s", dir)
	}
	files, err := compile(ctx, dir, sources)
	if err != nil {
		return err
	}

	// Version comments would name a protoc that was never run.
	internal_gengo.GenerateVersionMarkers = false
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: sources,
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      files,
	})
	if err != nil {
		return err
	}
	plugin.SupportedFeatures = internal_gengo.SupportedFeatures
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	resp := plugin.Response()
	if resp.Error != nil {
		return fmt.Errorf("%s", resp.GetError())
	}
	for _, f := range resp.File {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(f.GetName())), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// protoFiles lists the .proto files below dir, slash-separated and sorted.
func protoFiles(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".proto") {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out = append(out, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(out)
	return out, err
}

// compile parses and links the sources. The result holds every file once, after
// all the files that it imports, which is the order that plugins expect.
func compile(ctx context.Context, dir string, sources []string) ([]*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		// Comments become Go doc comments.
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	linked, err := compiler.Compile(ctx, sources...)
	if err != nil {
		return nil, err
	}
	var out []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		imports := f.Imports()
		for i := range imports.Len() {
			add(imports.Get(i).FileDescriptor)
		}
		out = append(out, protodesc.ToFileDescriptorProto(f))
	}
	for _, f := range linked {
		add(f)
	}
	return out, nil
}
