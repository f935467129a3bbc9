// Where this library lies, and so where its Python packages and their interpreter are.
#pragma once
#include <string>
#include <vector>

namespace bankml::capi {

struct Home {
    std::string packages;    // the folder that holds the package `bankml`
    std::string executable;  // their environment's python, by which the interpreter finds itself; need not be there
    std::vector<std::string> libraries;  // where its libpython may be, likeliest first
};

// Walks up from the object that holds this code: bankml/lib/libbankml.so in an installed package. A program that holds
// the code itself (libbankml.a) names that folder in its run path, as `bankml capi --libs --static` has it linked. False,
// and `why`, when there is no package.
bool find_home(Home &home, std::string &why);

}  // namespace bankml::capi
